#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "capstan/job/events.h"

namespace capstan::cli {

// Shows a job as it runs: on a terminal a line for the whole and one per worker, drawn over and over;
// elsewhere plain lines. Not thread-safe.
class TerminalProgress final : public job::Events {
 public:
  struct Style {
    bool terminal = false;  // lines can be drawn over
    bool color = false;
  };
  using Write = std::function<void(const std::string& text)>;

  // Of standard error, with TERM and NO_COLOR respected.
  static Style style_of_errors();
  // Writes to standard error.
  explicit TerminalProgress(Style style);
  TerminalProgress(Style style, Write write);
  ~TerminalProgress() override;

  void message(const std::string& line) override;
  void progress(const job::Progress& progress) override;
  void evaluated(const job::EvaluationRecord& record) override;
  // Removes the moving part.
  void finish();

 private:
  void update_rates(const job::Progress& progress);
  std::string bar(double part) const;
  std::string whole_line(const job::Progress& progress) const;
  std::string worker_line(std::size_t rank, const wire::WorkerRow& row) const;
  void erase();

  const Style style_;
  const Write write_;
  std::size_t drawn_ = 0;  // lines of the moving part
  TimePoint rate_at_;
  std::vector<std::uint64_t> rate_samples_;  // by worker, when the rates were made
  std::vector<double> rates_;                // samples a second, by worker
};

// Seconds between two reports of progress: what the user says or, for 0, what suits the style.
double progress_interval(double log_interval, const TerminalProgress::Style& style);

}  // namespace capstan::cli
