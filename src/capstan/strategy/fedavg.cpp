#include <fmt/format.h>

#include "capstan/strategy/argument_reader.h"
#include "capstan/strategy/strategies.h"

namespace capstan::strategy {
namespace {

// Federated averaging: every worker makes local steps over its part of the data; then all continue with the
// mean of their weights, weighted by samples.
class FedAvg final : public Strategy {
 public:
  explicit FedAvg(std::uint64_t epochs) : epochs_(epochs) {}

  std::string spelling() const override { return fmt::format("fedavg:{}", epochs_); }
  Trigger trigger(const View& view) const override { return when_all_have_pushed(view); }
  UpdateRule apply(std::span<const Push> merged, Version) const override {
    double samples = 0;
    for (const auto& push : merged) samples += push.samples;
    return {UpdateRule::Kind::kMove, 1, samples > 0 ? 0.0 : 1.0};  // without samples the weights stay
  }
  LocalSteps local_steps() const override { return {LocalSteps::Payload::kWeights, 0, epochs_, 1}; }
  bool workers_idle_during_update(std::uint32_t) const override { return true; }
  std::uint32_t pushes_per_update(std::uint32_t workers) const override { return workers; }

 private:
  const std::uint64_t epochs_;
};

}  // namespace

std::unique_ptr<Strategy> make_fedavg(const std::string& text, std::uint32_t) {
  ArgumentReader options(text, "fedavg:EPOCHS");
  const auto epochs = options.whole("EPOCHS", 1, 1, 1'000'000);
  options.end();
  return std::make_unique<FedAvg>(epochs);
}

}  // namespace capstan::strategy
