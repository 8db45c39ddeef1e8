#pragma once

#include <cstdint>
#include <optional>

#include "capstan/base/time.h"
#include "capstan/job/step_budget.h"
#include "capstan/wire/messages.h"

namespace capstan::job {

// The progress of a job. A value.
struct Progress {
  wire::StatusReport status;
  TimePoint at;                                  // time of `status`
  std::uint64_t start = 0, done = 0, total = 0;  // updates or, with local steps, a worker's steps
  double seconds = 0;                            // that done - start of them took
  std::optional<double> loss;                    // mean over the live workers that have made a step

  // Completed part of the whole job, 0 … 1.
  double part() const;
  // Estimated seconds until the end; none before the first update.
  std::optional<double> seconds_left() const;
};

// Computes progress from status reports, and decides when the next report is due. Not thread-safe.
class ProgressCounter {
 public:
  // `local_steps`: count a worker's own steps instead of updates. `interval` in seconds.
  ProgressCounter(const StepBudget& budget, bool local_steps, double interval, TimePoint begin);

  bool is_due(TimePoint now) const { return now - last_ >= interval_; }
  Progress take(const wire::StatusReport& status, TimePoint now);

 private:
  std::uint64_t done(const wire::StatusReport& status) const;

  const bool local_steps_;
  const std::uint64_t start_, total_;
  const Duration interval_;
  const TimePoint begin_;
  TimePoint last_;
};

}  // namespace capstan::job
