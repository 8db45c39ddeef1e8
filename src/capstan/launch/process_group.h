#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "capstan/launch/child.h"

namespace capstan::launch {

// Processes that cannot do without each other. A thread looks after them: one that has been stopped is not
// noticed by its peers, and is killed. Use from one thread, which lives as long as the process.
class ProcessGroup {
 public:
  struct Member {
    std::vector<std::string> arguments;  // the program's path first
    std::filesystem::path log;           // takes its standard error
  };

  void start(const std::vector<Member>& members);

  struct Lost {
    std::size_t index = 0;  // of the members
    Exit exit;
    bool was_stopped = false;  // and killed for it
    std::string last_words;    // the last line of its log
  };
  // The first that has ended with another code than 0.
  std::optional<Lost> find_lost();
  // The same, waiting for it a little: a connection has broken, and the kernel may take a moment.
  std::optional<Lost> await_lost(TimePoint deadline);
  // They end by themselves; those that have not by the deadline are killed with this object.
  void wait(TimePoint deadline);

 private:
  struct Process {
    Child child;
    std::filesystem::path log;
    std::optional<Exit> end;
    std::optional<TimePoint> stopped_at;
    bool killed = false;  // by us, since it was stopped
  };

  void look();

  std::mutex mutex_;  // guards the processes
  std::vector<Process> processes_;
  std::jthread watch_;  // last: ends first
};

}  // namespace capstan::launch
