#pragma once

#include <atomic>
#include <thread>

#include "capstan/job/environment.h"

namespace capstan::job {

// Polls stop requests on a thread of its own, because the thread that creates it computes, and a module of
// the user may compute for any time. Ends the process at once by environment.end_at_once, if there is one,
// after more requests than that thread handles. The destructor ends the polling. Create and destroy it on one
// thread; any thread may use the flags.
class StopWatch {
 public:
  // `handled`: requests that this object ignores. `most`: requests after these at which the process
  // continues.
  StopWatch(const Environment& environment, int handled, int most);

  std::atomic<bool> asked = false;     // by a request that is not ignored
  std::atomic<bool> training = false;  // while it is true, the process continues at one more request

 private:
  std::jthread thread_;  // last: ends first
};

}  // namespace capstan::job
