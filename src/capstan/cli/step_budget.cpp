#include "capstan/cli/step_budget.h"

#include <algorithm>

#include "capstan/data/partition.h"
#include "capstan/strategy/strategy_spec.h"

namespace capstan::cli {

double StepBudget::epoch_of(Version version) const {
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

StepBudget budget_steps(const config::JobConfig& config, std::uint64_t samples,
                        const checkpoint::Manifest* from) {
  const auto workers = config.is_single() ? 1 : config.workers;
  const auto job = config.has_servers() ? config.plan() : strategy::parse_strategy_spec("sync", workers);
  const auto round = job.first->local_steps();
  // Rounds of a worker after so many of its epochs and steps; what remains at the end is a round too.
  const auto rounds = [&](std::uint64_t epochs, std::uint64_t steps) {
    const auto done = round.epochs > 0 ? epochs : steps,
               length = round.epochs > 0 ? round.epochs : round.steps;
    return epochs == config.epochs ? (done + length - 1) / length : done / length;
  };
  const auto segments = from ? from->segments : std::vector<DataSegment>();
  const data::Partition whole{samples, workers, config.batch_size};
  const data::Remainder remainder(samples, segments);
  const data::Sampler sampler(whole, 0, config.seed, segments);
  StepBudget plan;
  plan.worker_steps = steps_of(segments);
  plan.start = from ? from->version : Version{};
  plan.samples = samples;
  const auto steps_per_round = round.epochs > 0 ? round.epochs * whole.steps_per_epoch() : round.steps;
  const auto per_epoch = job.after({}, whole.steps_per_epoch() * workers / steps_per_round);
  plan.per_epoch = std::max<std::uint64_t>(1, per_epoch.value);
  std::uint64_t steps = 0;
  for (std::uint64_t epoch = 0; epoch < config.epochs; ++epoch) {
    steps += sampler.steps(epoch);
    const auto pushes = rounds(epoch + 1, steps) * workers;
    const auto left = static_cast<double>(remainder.samples(epoch)) / static_cast<double>(samples);
    plan.epochs.push_back({job.after(plan.start, pushes).value, 1 - left});
  }
  plan.worker_steps += steps;
  plan.total = plan.epochs.empty() ? plan.start.value : plan.epochs.back().end;
  if (config.max_steps > 0) plan.total = std::min(plan.total, config.max_steps);
  plan.segment_steps = std::min(steps, job.pushes(plan.start, {plan.total}) / workers * steps_per_round);
  return plan;
}

}  // namespace capstan::cli
