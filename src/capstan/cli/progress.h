#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capstan/base/time.h"
#include "capstan/wire/messages.h"

namespace capstan::cli {

// Shows a job as it runs on standard error: on a terminal a line per worker and one for the whole, drawn
// over and over; elsewhere a plain line now and then. Not thread-safe.
class Progress {
 public:
  // What the whole is counted in: the servers' updates, or where these are rare, a worker's own steps.
  enum class By { kUpdates, kWorkerSteps };
  // `interval` 0: 0.2 s on a terminal, 2 s elsewhere.
  Progress(std::uint64_t total_steps, double interval, By by = By::kUpdates);
  ~Progress();

  bool due() const;
  void show(const wire::StatusReport& status);
  // A line that stays, above the moving part.
  void say(const std::string& line);
  void finish();

 private:
  std::string bar(double part) const;
  std::string whole_line(const wire::StatusReport& status, double samples_per_second) const;
  std::string worker_line(std::size_t rank, const wire::WorkerRow& row, double samples_per_second) const;
  void erase();

  std::uint64_t steps(const wire::StatusReport& status) const;

  const std::uint64_t total_steps_;
  const By by_;
  const bool terminal_;
  const bool color_;
  const Duration interval_;
  TimePoint last_;
  const TimePoint begun_ = SteadyClock::now();
  std::size_t drawn_ = 0;  // lines of the moving part
  TimePoint rate_at_;
  std::vector<std::uint64_t> rate_samples_;  // by worker, then the sum
  std::vector<double> rates_;
};

}  // namespace capstan::cli
