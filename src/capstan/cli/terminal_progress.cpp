#include "capstan/cli/terminal_progress.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "capstan/base/text.h"

namespace capstan::cli {
namespace {

constexpr std::size_t kMaxWorkerLines = 16;
constexpr auto kRateWindow = std::chrono::milliseconds(900);

std::string time_text(const std::optional<double>& s) {
  if (!s || *s > 1e7) return "-";
  const auto t = static_cast<std::uint64_t>(*s);
  if (t < 3600) return fmt::format("{}:{:02}", t / 60, t % 60);
  return fmt::format("{}:{:02}:{:02}", t / 3600, t / 60 % 60, t % 60);
}

}  // namespace

double progress_interval(double log_interval, const TerminalProgress::Style& style) {
  if (log_interval > 0) return log_interval;
  return style.terminal ? 0.2 : 2;
}

TerminalProgress::TerminalProgress(Style style) : shown_(style) {}

TerminalProgress::TerminalProgress(Style style, Write write) : shown_(style, std::move(write)) {}

std::string TerminalProgress::bar(double part) const {
  constexpr int kWidth = 16;
  const int full = static_cast<int>(std::clamp(part, 0.0, 1.0) * kWidth);
  std::string out;
  for (int i = 0; i < kWidth; ++i) out += i < full ? "█" : "░";
  return shown_.style().color ? "\033[36m" + out + "\033[0m" : out;
}

// Short enough for a terminal of 80 columns.
std::string TerminalProgress::whole_line(const job::Progress& p) const {
  const auto loss = p.loss ? fmt::format("{:.4f}", *p.loss) : "-";
  return fmt::format("{} {:3.0f} %  step {}/{}  loss {}  {:.0f} samples/s  ETA {}",
                     shown_.style().terminal ? bar(p.part()) : "total", 100 * p.part(), p.done, p.total, loss,
                     std::accumulate(rates_.begin(), rates_.end(), 0.0), time_text(p.seconds_left()));
}

std::string TerminalProgress::worker_line(std::size_t rank, const wire::WorkerRow& row) const {
  constexpr const char* kStates[] = {"starting", "", "done", "lost"};
  if (row.state != wire::WorkerState::kLive)
    return fmt::format("  worker {}  {}", rank, kStates[static_cast<int>(row.state)]);
  const double total = row.compute_seconds + row.wait_seconds;
  return fmt::format("  worker {}  step {}  loss {:.4f}  {:.0f} samples/s  computing {:.0f} %", rank,
                     row.steps.value, row.loss, rates_[rank],
                     total > 0 ? 100 * row.compute_seconds / total : 0);
}

void TerminalProgress::update_rates(const job::Progress& p) {
  const auto& workers = p.status.workers;
  if (rates_.size() != workers.size()) {
    rates_.assign(workers.size(), 0);
    rate_samples_.assign(workers.size(), 0);
    rate_at_ = {};
  }
  if (p.at - rate_at_ < kRateWindow) return;
  // The first rate is since the start of the job.
  const double window = rate_at_ == TimePoint() ? p.status.seconds : seconds(p.at - rate_at_);
  for (std::size_t i = 0; i < workers.size(); ++i) {
    // A restarted worker counts from 0 again.
    const auto before = workers[i].samples < rate_samples_[i] ? 0 : rate_samples_[i];
    rates_[i] = window > 0 ? static_cast<double>(workers[i].samples - before) / window : 0;
    rate_samples_[i] = workers[i].samples;
  }
  rate_at_ = p.at;
}

void TerminalProgress::progress(const job::Progress& p) {
  update_rates(p);
  const auto& workers = p.status.workers;
  const auto count = shown_.style().terminal             ? std::min(workers.size(), kMaxWorkerLines)
                     : workers.size() <= kMaxWorkerLines ? workers.size()
                                                         : 0;
  std::vector<std::string> lines = {whole_line(p)};
  for (std::size_t i = 0; i < count; ++i) lines.push_back(worker_line(i, workers[i]));
  shown_.draw(lines);
}

void TerminalProgress::message(const std::string& line) {
  shown_.say(printable(line));  // it may quote a peer
}

void TerminalProgress::evaluated(const job::EvaluationRecord& record) {
  message(record.text());
}

}  // namespace capstan::cli
