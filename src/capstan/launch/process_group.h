#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "capstan/launch/child.h"

namespace capstan::launch {

// Processes that depend on each other. A thread monitors them and kills one that stays stopped (SIGSTOP),
// because its peers would wait for it forever. Use from one thread that runs until this process ends.
class ProcessGroup {
 public:
  struct Member {
    std::vector<std::string> arguments;  // the program's path first
    std::filesystem::path log;           // for its standard error
  };

  void start(const std::vector<Member>& members);

  struct Lost {
    std::size_t index = 0;  // of the members
    Exit exit;
    bool was_stopped = false;  // it was stopped, and killed for that
    std::string last_log_line;
  };
  // The first process that has ended with an exit code other than 0. One that ended because it lost another
  // process (kLost) only if there is no other.
  std::optional<Lost> find_lost();
  // The same, but waits until the deadline for the process that was lost first: the kernel may report its end
  // after the connection breaks.
  std::optional<Lost> await_lost(TimePoint deadline);
  // Waits for all processes to end by themselves; the destructor kills those that have not.
  void wait(TimePoint deadline);

 private:
  struct Process {
    Child child;
    std::filesystem::path log;
    std::optional<Exit> end;
    std::optional<TimePoint> stopped_at;
    bool killed = false;  // by poll(), because it was stopped
  };

  void poll();

  std::mutex mutex_;  // guards the processes
  std::vector<Process> processes_;
  std::jthread watch_;  // last: ends first
};

}  // namespace capstan::launch
