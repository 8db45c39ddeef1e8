#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capstan/cli/status_line.h"
#include "capstan/job/events.h"

namespace capstan::cli {

// Shows the progress of a job: one line for the job and one per worker, redrawn in place on a terminal, plain
// lines elsewhere. Not thread-safe.
class TerminalProgress final : public job::Events {
 public:
  using Style = StatusLine::Style;
  using Write = StatusLine::Write;

  static Style style_of_errors() { return StatusLine::style_of_errors(); }
  // Writes to standard error.
  explicit TerminalProgress(Style style);
  TerminalProgress(Style style, Write write);

  void message(const std::string& line) override;
  void progress(const job::Progress& progress) override;
  void evaluated(const job::EvaluationRecord& record) override;
  // Erases the progress lines.
  void finish() { shown_.erase(); }

 private:
  void update_rates(const job::Progress& progress);
  std::string bar(double part) const;
  std::string whole_line(const job::Progress& progress) const;
  std::string worker_line(std::size_t rank, const wire::WorkerRow& row) const;

  StatusLine shown_;
  TimePoint rate_at_;
  std::vector<std::uint64_t> rate_samples_;  // by worker, at rate_at_
  std::vector<double> rates_;                // samples per second, by worker
};

// Seconds between two progress reports: `log_interval` or, for 0, the default of the style.
double progress_interval(double log_interval, const TerminalProgress::Style& style);

}  // namespace capstan::cli
