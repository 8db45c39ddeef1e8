#pragma once

#include <string>
#include <vector>

#include "capstan/base/time.h"
#include "capstan/launch/child.h"

namespace capstan::launch {

// The processes of one job, as its supervisor sees them. Not thread-safe.
class Processes {
 public:
  struct Ended {
    bool is_server = false;
    std::size_t index = 0;
    Exit exit;
    std::string last_log_line;
  };

  virtual ~Processes() = default;
  // Processes that have ended since the last call.
  virtual std::vector<Ended> reap() = 0;
  // No effect if the worker is not one of these processes, or has ended.
  virtual void kill_worker(std::size_t rank) = 0;
  // Waits for all processes to end by themselves; kills those that have not at the deadline.
  virtual void wait(TimePoint deadline) = 0;
};

}  // namespace capstan::launch
