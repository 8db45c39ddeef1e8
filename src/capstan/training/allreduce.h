#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace capstan::training {

// Sums arrays over the processes of a job without servers, with Gloo. Use from one thread. Throws Failure
// (exit code 3) if one of the other processes is lost.
class AllreduceGroup {
 public:
  // Called every 100 ms while this process waits for the others; throws to give up.
  using Poll = std::function<void()>;

  // Opens the rendezvous at HOST:PORT (port 0: any) as rank 0. Gloo listens on every interface of the host
  // and does not check a token.
  static std::unique_ptr<AllreduceGroup> open(const std::string& address, std::uint32_t workers, Poll poll);
  // Joins the rendezvous of rank 0.
  static std::unique_ptr<AllreduceGroup> join(const std::string& address, std::uint32_t rank,
                                              std::uint32_t workers);
  ~AllreduceGroup();

  std::string address() const;  // for join()
  // Waits until all processes have joined; called once.
  void rendezvous();
  // values[i] = Σ values[i] over all processes, bitwise identical in each.
  void sum(std::span<float> values);

 private:
  class Gloo;
  explicit AllreduceGroup(std::unique_ptr<Gloo> gloo);
  std::unique_ptr<Gloo> gloo_;
};

}  // namespace capstan::training
