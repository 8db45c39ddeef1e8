#include <fmt/format.h>

#include "capstan/strategy/argument_reader.h"
#include "capstan/strategy/strategies.h"

namespace capstan::strategy {
namespace {

// Elastic averaging: after every `steps` local steps a worker's weights x and the servers' w move towards
// each other by δ = α·(x - w).
class Easgd final : public Strategy {
 public:
  Easgd(double alpha, std::uint64_t steps) : alpha_(alpha), steps_(steps) {}

  std::string spelling() const override { return fmt::format("easgd:{}:{}", text_of(alpha_), steps_); }
  Trigger trigger(const View& view) const override { return {view.buffer.empty() ? 0u : 1u}; }
  double weight(const Push&, const Merging&) const override { return alpha_; }
  UpdateRule apply(std::span<const Push>, Version) const override {
    return {UpdateRule::Kind::kMove, 1, 1 - alpha_};
  }
  // The worker receives w' = w + δ, not w: since x - w' = (1 - α)·(x - w), δ = α / (1 - α)·(x - w').
  LocalSteps local_steps() const override {
    return {LocalSteps::Payload::kWeights, steps_, 0, alpha_ / (1 - alpha_)};
  }
  bool workers_idle_during_update(std::uint32_t workers) const override { return workers == 1; }
  std::uint32_t pushes_per_update(std::uint32_t) const override { return 1; }

 private:
  const double alpha_;
  const std::uint64_t steps_;
};

}  // namespace

std::unique_ptr<Strategy> make_easgd(const std::string& text, std::uint32_t workers) {
  ArgumentReader options(text, "easgd:ALPHA:T");
  const auto alpha = options.number("ALPHA", 0.9 / workers, 1e-9, 0.999);
  const auto steps = options.whole("T", 10, 1, 1'000'000'000);
  options.end();
  return std::make_unique<Easgd>(alpha, steps);
}

}  // namespace capstan::strategy
