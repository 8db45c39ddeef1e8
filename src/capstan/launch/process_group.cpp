#include "capstan/launch/process_group.h"

#include <signal.h>

#include "capstan/base/failure.h"

namespace capstan::launch {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(100);
constexpr auto kStoppedTimeout = std::chrono::seconds(3);

}  // namespace

void ProcessGroup::start(const std::vector<Member>& members) {
  for (const auto& member : members)
    processes_.push_back({Child({member.arguments, {}, member.log, false}), member.log, {}, {}, false});
  watch_ = std::jthread([this](const std::stop_token& ending) {
    while (!ending.stop_requested()) {
      poll();
      std::this_thread::sleep_for(kPollInterval);
    }
  });
}

void ProcessGroup::poll() {
  const std::lock_guard lock(mutex_);
  for (auto& p : processes_) {
    if (!p.end) p.end = p.child.poll();
    if (p.end) continue;
    if (!p.child.is_stopped()) {
      p.stopped_at.reset();
    } else if (!p.stopped_at) {
      p.stopped_at = SteadyClock::now();
    } else if (SteadyClock::now() - *p.stopped_at > kStoppedTimeout) {
      p.killed = true;
      p.child.signal(SIGKILL);
    }
  }
}

std::optional<ProcessGroup::Lost> ProcessGroup::find_lost() {
  const std::lock_guard lock(mutex_);
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const auto& end = processes_[i].end;
    if (!end || end->code == kSuccess) continue;
    if (!found || processes_[*found].end->code == kLost) found = i;
    if (end->code != kLost) break;
  }
  if (!found) return {};
  const auto& p = processes_[*found];
  return Lost{*found, *p.end, p.killed, last_line(p.log)};
}

std::optional<ProcessGroup::Lost> ProcessGroup::await_lost(TimePoint deadline) {
  for (;;) {
    poll();
    auto lost = find_lost();
    if ((lost && lost->exit.code != kLost) || SteadyClock::now() >= deadline) return lost;
    std::this_thread::sleep_for(kPollInterval);
  }
}

void ProcessGroup::wait(TimePoint deadline) {
  watch_ = {};
  for (auto& p : processes_) (void)p.child.wait(deadline);
}

}  // namespace capstan::launch
