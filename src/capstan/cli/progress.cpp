#include "capstan/cli/progress.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

#include "capstan/cli/output.h"

namespace capstan::cli {
namespace {

constexpr std::size_t kMaxWorkerLines = 16;
constexpr auto kRateWindow = std::chrono::milliseconds(900);

std::string time_text(double s) {
  if (s < 0 || s > 1e7) return "-";
  const auto t = static_cast<std::uint64_t>(s);
  if (t < 3600) return fmt::format("{}:{:02}", t / 60, t % 60);
  return fmt::format("{}:{:02}:{:02}", t / 3600, t / 60 % 60, t % 60);
}

bool is_terminal() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && term && std::string_view(term) != "dumb";
}

}  // namespace

Progress::Progress(std::uint64_t total_steps, double interval, By by)
    : total_steps_(total_steps),
      by_(by),
      terminal_(is_terminal()),
      color_(terminal_ && !std::getenv("NO_COLOR")),
      interval_(from_seconds(interval > 0 ? interval
                             : terminal_  ? 0.2
                                          : 2)),
      last_(SteadyClock::now()) {}

Progress::~Progress() {
  finish();
}

bool Progress::due() const {
  return SteadyClock::now() - last_ >= interval_;
}

std::string Progress::bar(double part) const {
  constexpr int kWidth = 16;
  const int full = static_cast<int>(std::clamp(part, 0.0, 1.0) * kWidth);
  std::string out;
  for (int i = 0; i < kWidth; ++i) out += i < full ? "█" : "░";
  return color_ ? "\033[36m" + out + "\033[0m" : out;
}

std::uint64_t Progress::steps(const wire::StatusReport& s) const {
  if (by_ == By::kUpdates || s.workers.empty()) return s.version.value;
  std::uint64_t sum = 0;
  for (const auto& w : s.workers) sum += w.steps.value;
  return sum / s.workers.size();
}

// Short enough for a terminal of 80 columns.
std::string Progress::whole_line(const wire::StatusReport& s, double rate) const {
  const auto done = steps(s);
  const double part = total_steps_ > 0 ? static_cast<double>(done) / static_cast<double>(total_steps_) : 0;
  double loss = 0;
  for (const auto& w : s.workers) loss += w.loss / static_cast<double>(s.workers.size());
  // Up to the last update, where those are what is counted.
  const double took = by_ == By::kUpdates ? s.seconds : seconds(last_ - begun_);
  const double left = part > 0 ? took * (1 - part) / part : -1;
  return fmt::format("{} {:3.0f} %  step {}/{}  loss {:.4f}  {:.0f} samples/s  ETA {}",
                     terminal_ ? bar(part) : "total", 100 * part, done, total_steps_, loss, rate,
                     time_text(left));
}

std::string Progress::worker_line(std::size_t rank, const wire::WorkerRow& row, double rate) const {
  constexpr const char* kStates[] = {"starting", "", "done", "lost"};
  if (row.state != wire::WorkerState::kLive)
    return fmt::format("  worker {}  {}", rank, kStates[static_cast<int>(row.state)]);
  const double total = row.compute_seconds + row.wait_seconds;
  return fmt::format("  worker {}  step {}  loss {:.4f}  {:.0f} samples/s  computing {:.0f} %", rank,
                     row.steps.value, row.loss, rate, total > 0 ? 100 * row.compute_seconds / total : 0);
}

void Progress::show(const wire::StatusReport& status) {
  last_ = SteadyClock::now();
  if (rates_.size() != status.workers.size() + 1) {
    rates_.assign(status.workers.size() + 1, 0);
    rate_samples_.assign(status.workers.size() + 1, 0);
  }
  if (last_ - rate_at_ >= kRateWindow) {
    // At first the rate since the job began.
    const double window = rate_at_ == TimePoint() ? status.seconds : seconds(last_ - rate_at_);
    double sum = 0;
    for (std::size_t i = 0; i < status.workers.size(); ++i) {
      const auto samples = status.workers[i].samples;
      rates_[i] = window > 0 ? static_cast<double>(samples - rate_samples_[i]) / window : 0;
      rate_samples_[i] = samples;
      sum += rates_[i];
    }
    rates_.back() = sum;
    rate_at_ = last_;
  }
  if (!terminal_) {
    cli::say(whole_line(status, rates_.back()));
    if (status.workers.size() <= kMaxWorkerLines) {
      for (std::size_t i = 0; i < status.workers.size(); ++i) {
        cli::say(worker_line(i, status.workers[i], rates_[i]));
      }
    }
    return;
  }
  erase();
  // Without wrapping, a long line in a narrow window is cut instead of breaking the count of lines.
  std::string out = "\033[?7l" + whole_line(status, rates_.back()) + "\033[K\n";
  drawn_ = 1;
  for (std::size_t i = 0; i < std::min(status.workers.size(), kMaxWorkerLines); ++i, ++drawn_) {
    out += worker_line(i, status.workers[i], rates_[i]) + "\033[K\n";
  }
  out += "\033[?7h";
  std::fputs(out.c_str(), stderr);
}

void Progress::erase() {
  if (drawn_ > 0) std::fputs(fmt::format("\033[{}A\033[J", drawn_).c_str(), stderr);
  drawn_ = 0;
}

void Progress::say(const std::string& line) {
  erase();
  cli::say(line);
}

void Progress::finish() {
  erase();
  std::fflush(stderr);
}

}  // namespace capstan::cli
