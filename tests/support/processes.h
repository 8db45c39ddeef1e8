#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include <poll.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capstan/base/time.h"
#include "capstan/base/unique_fd.h"
#include "support/eventually.h"

// Waits for processes and files: woken by the kernel, with a deadline.
namespace capstan::testing {

// Readable once the process has ended, also as a zombie. Empty if there is no such process.
inline UniqueFd process_fd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// Sleeps until one of these descriptors is readable, or the deadline.
inline bool wait_readable(const std::vector<int>& fds, TimePoint deadline) {
  std::vector<pollfd> polled;
  for (const int fd : fds) polled.push_back({fd, POLLIN, 0});  // negative ones are ignored
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
  return ::poll(polled.data(), polled.size(), static_cast<int>(std::clamp<long>(left, 0, 1'000'000))) > 0;
}

inline bool all_ended(const std::vector<pid_t>& pids, Duration timeout = kTestTimeout) {
  const auto deadline = SteadyClock::now() + timeout;
  for (const auto pid : pids) {
    const auto fd = process_fd(pid);
    if (fd && !wait_readable({fd.get()}, deadline)) return false;
  }
  return true;
}

// Waits until `condition` holds, which is checked whenever a file is written, moved or removed in the
// folder (or is the file itself), and when the process has ended; false if it does not hold by then.
inline bool await_files(const std::filesystem::path& watched, const std::function<bool()>& condition,
                        pid_t process, Duration timeout = kTestTimeout) {
  const UniqueFd changes(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ::inotify_add_watch(changes.get(), watched.c_str(), IN_MODIFY | IN_CREATE | IN_MOVE | IN_DELETE);
  const auto ended = process_fd(process);
  const auto deadline = SteadyClock::now() + timeout;
  while (!condition()) {
    if (!ended || wait_readable({ended.get()}, SteadyClock::now())) return condition();
    if (!wait_readable({changes.get(), ended.get()}, deadline)) return condition();
    char events[4096];
    while (::read(changes.get(), events, sizeof events) > 0) {
    }
  }
  return true;
}

}  // namespace capstan::testing
