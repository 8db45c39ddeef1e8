#include "capstan/job/progress.h"

#include <algorithm>

namespace capstan::job {
namespace {

using wire::WorkerState;

std::optional<double> mean_loss(const wire::StatusReport& status) {
  double sum = 0;
  int workers = 0;
  for (const auto& row : status.workers) {
    if (row.state != WorkerState::kLive || row.samples == 0) continue;
    sum += row.loss;
    ++workers;
  }
  return workers > 0 ? std::optional(sum / workers) : std::nullopt;
}

}  // namespace

double Progress::part() const {
  return total > 0 ? std::min(1.0, static_cast<double>(done) / static_cast<double>(total)) : 0;
}

std::optional<double> Progress::seconds_left() const {
  if (done <= start) return {};
  const auto left = total > done ? total - done : 0;
  return seconds * static_cast<double>(left) / static_cast<double>(done - start);
}

ProgressCounter::ProgressCounter(const StepBudget& budget, bool local_steps, double interval, TimePoint begin)
    : local_steps_(local_steps),
      start_(local_steps ? 0 : budget.start.value),
      total_(local_steps ? budget.segment_steps : budget.total),
      interval_(from_seconds(interval)),
      begin_(begin),
      last_(begin) {}

std::uint64_t ProgressCounter::done(const wire::StatusReport& status) const {
  if (!local_steps_) return status.version.value;
  std::uint64_t sum = 0, workers = 0;
  for (const auto& row : status.workers) {
    if (row.state == WorkerState::kLost) continue;
    sum += row.steps.value;
    ++workers;
  }
  return workers > 0 ? sum / workers : 0;
}

Progress ProgressCounter::take(const wire::StatusReport& status, TimePoint now) {
  last_ = now;
  // For updates, the time up to the last one; local steps are made all the time.
  const double took = local_steps_ ? seconds(now - begin_) : status.seconds;
  return {status, now, start_, done(status), total_, took, mean_loss(status)};
}

}  // namespace capstan::job
