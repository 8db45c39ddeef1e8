#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace capstan::training {

// The processes of a job without a server in its step: what each has is added up among them, by Gloo. Use
// from one thread. Throws Failure (exit code 3) where one of the others is lost.
class AllreduceGroup {
 public:
  // Called now and then while this process waits for the others; throws to give up.
  using Look = std::function<void()>;

  // Opens the place where the others find this process, which has rank 0: HOST:PORT, 0 for any port. Gloo
  // listens on every interface of the host, and asks nobody for a token.
  static std::unique_ptr<AllreduceGroup> open(const std::string& address, std::uint32_t workers, Look look);
  // Goes there.
  static std::unique_ptr<AllreduceGroup> join(const std::string& address, std::uint32_t rank,
                                              std::uint32_t workers);
  ~AllreduceGroup();

  std::string address() const;  // for the others
  // Waits for all, once.
  void meet();
  // values[i] = Σ of everybody's values[i], the same bits for all.
  void sum(std::span<float> values);

 private:
  class Gloo;
  explicit AllreduceGroup(std::unique_ptr<Gloo> gloo);
  std::unique_ptr<Gloo> gloo_;
};

}  // namespace capstan::training
