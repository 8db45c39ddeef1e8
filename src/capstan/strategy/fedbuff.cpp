#include <cmath>

#include <fmt/format.h>

#include "capstan/strategy/argument_reader.h"
#include "capstan/strategy/strategies.h"

namespace capstan::strategy {
namespace {

// Buffered asynchronous federated learning: workers make local steps and never wait; every K deltas, each
// scaled by its staleness, make one outer step.
class FedBuff final : public Strategy {
 public:
  FedBuff(std::uint32_t k, std::uint64_t steps, double rate) : k_(k), steps_(steps), rate_(rate) {}

  std::string spelling() const override {
    return fmt::format("fedbuff:{}:{}:{}", k_, steps_, text_of(rate_));
  }
  Admission admit(const Push&, const View&) const override { return Admission::kAccumulate; }
  double weight(const Push& push, const Merging& merging) const override {
    return 1 / std::sqrt(1 + static_cast<double>(staleness(push, merging.now))) / k_;
  }
  Trigger trigger(const View& view) const override { return {view.buffer.size() >= k_ ? k_ : 0}; }
  LocalSteps local_steps() const override { return {LocalSteps::Payload::kDelta, steps_, 0, 1}; }
  std::optional<OuterStep> outer() const override { return OuterStep{rate_, 0}; }
  bool workers_idle_during_update(std::uint32_t) const override { return false; }
  std::uint32_t pushes_per_update(std::uint32_t) const override { return k_; }

 private:
  const std::uint32_t k_;
  const std::uint64_t steps_;
  const double rate_;
};

}  // namespace

std::unique_ptr<Strategy> make_fedbuff(const std::string& text, std::uint32_t) {
  ArgumentReader options(text, "fedbuff:K:H:RATE");
  const auto k = static_cast<std::uint32_t>(options.whole("K", 10, 1, 1'000'000));
  const auto steps = options.whole("H", 10, 1, 1'000'000'000);
  const auto rate = options.number("RATE", 1, 1e-6, 1e3);
  options.end();
  return std::make_unique<FedBuff>(k, steps, rate);
}

}  // namespace capstan::strategy
