#include "capstan/cli/step_plan.h"

#include <algorithm>

#include "capstan/data/partition.h"
#include "capstan/strategy/strategy.h"

namespace capstan::cli {

double StepPlan::epoch_of(Version version) const {
  auto before = start.value;
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    const auto& epoch = epochs[i];
    if (version.value < epoch.end || i + 1 == epochs.size()) {
      const auto done = static_cast<double>(version.value - std::min(version.value, before)) /
                        static_cast<double>(std::max<std::uint64_t>(1, epoch.end - before));
      return static_cast<double>(i) + epoch.begun + (1 - epoch.begun) * std::min(1.0, done);
    }
    before = epoch.end;
  }
  return 0;
}

StepPlan plan_steps(const config::JobConfig& config, std::uint64_t samples,
                    const checkpoint::Manifest* from) {
  const auto workers = config.is_single() ? 1 : config.workers;
  const auto merged =
      config.is_single() ? 1 : strategy::parse(config.strategy, workers)->pushes_per_update(workers);
  const auto legs = from ? from->legs : std::vector<DataLeg>();
  const data::Partition whole{samples, workers, config.batch_size};
  const data::Remainder remainder(samples, legs);
  const data::Sampler sampler(whole, 0, config.seed, legs);
  StepPlan plan;
  plan.start = from ? from->version : Version{};
  plan.samples = samples;
  plan.per_epoch = std::max<std::uint64_t>(1, whole.steps_per_epoch() * workers / merged);
  std::uint64_t pushes = 0;
  for (std::uint64_t epoch = 0; epoch < config.epochs; ++epoch) {
    pushes += sampler.steps(epoch) * workers;
    const auto left = static_cast<double>(remainder.samples(epoch)) / static_cast<double>(samples);
    plan.epochs.push_back({plan.start.value + (pushes + merged - 1) / merged, 1 - left});
  }
  plan.total = plan.epochs.empty() ? plan.start.value : plan.epochs.back().end;
  if (config.max_steps > 0) plan.total = std::min(plan.total, config.max_steps);
  return plan;
}

}  // namespace capstan::cli
