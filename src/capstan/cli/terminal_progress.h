#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capstan/cli/status_line.h"
#include "capstan/job/events.h"

namespace capstan::cli {

// Shows a job as it runs: on a terminal a line for the whole and one per worker, drawn over and over;
// elsewhere plain lines. Not thread-safe.
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
  // Removes the moving part.
  void finish() { shown_.erase(); }

 private:
  void update_rates(const job::Progress& progress);
  std::string bar(double part) const;
  std::string whole_line(const job::Progress& progress) const;
  std::string worker_line(std::size_t rank, const wire::WorkerRow& row) const;

  StatusLine shown_;
  TimePoint rate_at_;
  std::vector<std::uint64_t> rate_samples_;  // by worker, when the rates were made
  std::vector<double> rates_;                // samples a second, by worker
};

// Seconds between two reports of progress: what the user says or, for 0, what suits the style.
double progress_interval(double log_interval, const TerminalProgress::Style& style);

}  // namespace capstan::cli
