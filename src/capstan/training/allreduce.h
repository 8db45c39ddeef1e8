#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace at {
class Tensor;
}

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

  // A sum that is being computed. wait() returns when the tensor has the result.
  class Sum {
   public:
    virtual ~Sum() = default;
    virtual void wait() = 0;
  };
  // The same for a dense or sparse tensor, in the background; several may be under way, which all processes
  // begin in the same order. `on_done` is called on another thread when the sum is complete; may be empty.
  std::unique_ptr<Sum> begin_sum(const at::Tensor& tensor, std::function<void()> on_done);

 private:
  class Gloo;
  explicit AllreduceGroup(std::unique_ptr<Gloo> gloo);
  std::unique_ptr<Gloo> gloo_;
};

}  // namespace capstan::training
