#include "capstan/job/step_budget.h"

#include <algorithm>
#include <utility>

#include "capstan/data/partition.h"
#include "capstan/strategy/strategy_spec.h"

namespace capstan::job {
namespace {

// Counts the pushes of one worker, epoch by epoch.
class PushCounter {
 public:
  PushCounter(const strategy::LocalSteps& local, std::uint64_t epochs) : local_(local), epochs_(epochs) {}

  // Adds the next epoch, of which this run makes `steps` steps. Returns the pushes until its end.
  std::uint64_t add_epoch(std::uint64_t steps) {
    ++epoch_;
    steps_ += steps;
    if (local_.epochs == 0)
      return epoch_ == epochs_ ? (steps_ + local_.steps - 1) / local_.steps : steps_ / local_.steps;
    // A push ends each block of epochs, and the run; a block done by earlier data segments has no push here.
    unpushed_ = unpushed_ || steps > 0;
    if ((epoch_ % local_.epochs == 0 || epoch_ == epochs_) && std::exchange(unpushed_, false)) ++pushes_;
    return pushes_;
  }
  std::uint64_t steps() const { return steps_; }

 private:
  const strategy::LocalSteps local_;
  const std::uint64_t epochs_;
  std::uint64_t epoch_ = 0, steps_ = 0, pushes_ = 0;
  bool unpushed_ = false;
};

}  // namespace

double StepBudget::epoch_of(Version version) const {
  auto before = start.value;
  if (version <= start) {
    double done = 0;
    for (const auto& epoch : epochs) done += epoch.begun;
    return done;
  }
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    const auto& epoch = epochs[i];
    // With long local steps an update comes only after several epochs.
    if (version.value <= epoch.end || i + 1 == epochs.size()) {
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
  const auto spec =
      config.has_servers() ? config.strategy_spec() : strategy::parse_strategy_spec("sync", workers);
  const auto segments = from ? from->segments : std::vector<DataSegment>();
  const data::Partition whole{samples, workers, config.batch_size};
  const data::Remainder remainder(samples, segments);
  const data::Sampler sampler(whole, 0, config.seed, segments);
  const auto local = spec.first->local_steps();
  const auto steps_per_push = local.epochs > 0 ? local.epochs * whole.steps_per_epoch() : local.steps;

  StepBudget budget;
  budget.start = from ? from->version : Version{};
  budget.samples = samples;
  const auto per_epoch = spec.after({}, whole.steps_per_epoch() * workers / steps_per_push);
  budget.per_epoch = std::max<std::uint64_t>(1, per_epoch.value);
  PushCounter counter(local, config.epochs);
  for (std::uint64_t epoch = 0; epoch < config.epochs; ++epoch) {
    const auto pushes = counter.add_epoch(sampler.steps(epoch)) * workers;
    const auto left = static_cast<double>(remainder.samples(epoch)) / static_cast<double>(samples);
    budget.epochs.push_back({spec.after(budget.start, pushes).value, 1 - left});
  }
  budget.total = budget.epochs.empty() ? budget.start.value : budget.epochs.back().end;
  if (config.max_steps > 0) budget.total = std::min(budget.total, config.max_steps);
  budget.segment_steps =
      std::min(counter.steps(), spec.pushes(budget.start, {budget.total}) / workers * steps_per_push);
  const bool is_limited = config.max_steps > 0 && config.max_steps == budget.total;
  budget.scheduled = local.uses_local_steps()
                         ? steps_of(segments) + (is_limited ? budget.segment_steps : counter.steps())
                         : budget.total;
  return budget;
}

}  // namespace capstan::job
