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

// Passes over the training set that are done of the epochs from `epoch` on.
double begun_from(std::uint64_t epoch, const data::Remainder& remainder, std::uint64_t samples) {
  double passes = 0;
  const auto& runs = remainder.runs();
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
    const auto first = std::max(epoch, runs[i].first_epoch), end = runs[i + 1].first_epoch;
    const auto left = static_cast<double>(runs[i].samples) / static_cast<double>(samples);
    if (first < end) passes += static_cast<double>(end - first) * (1 - left);
  }
  return passes;
}

}  // namespace

// The passes before the start, and this run's share of each epoch up to the version.
double StepBudget::epoch_of(Version version) const {
  double passes = begun_later;
  for (const auto& epoch : epochs) passes += epoch.begun;
  auto before = start.value;
  for (std::size_t i = 0; i < epochs.size() && version.value > before; ++i) {
    const auto& epoch = epochs[i];
    // With long local steps an update comes only after several epochs.
    const bool is_over = version.value >= epoch.end;
    passes +=
        (1 - epoch.begun) *
        (is_over ? 1 : static_cast<double>(version.value - before) / static_cast<double>(epoch.end - before));
    before = epoch.end;
  }
  return passes;
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
  budget.begun_later = begun_from(config.epochs, remainder, samples);
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
