#pragma once

#include <functional>

#include "capstan/base/time.h"
#include "capstan/job/events.h"
#include "capstan/job/program.h"

namespace capstan::job {

// Counts stop requests of the user: the first means finish the step and save, the second means end at once.
// Thread-safe.
class StopToken {
 public:
  virtual ~StopToken() = default;
  virtual int requests() = 0;
  // A descriptor that is readable after a request; -1: none, call requests() regularly.
  virtual int fd() const { return -1; }
};

using Now = std::function<TimePoint()>;

// The interface from a job to the program that runs it. A job neither prints nor reads signals. Everything
// here must outlive the job.
struct Environment {
  Events& events;
  StopToken& stop;
  Now now = SteadyClock::now;
  const Program& program = capstan_program();
  // Ends the process without waiting for its threads: nothing else ends a blocked disk write, or a wait or a
  // computation inside of a library. May be called on any thread. None: a job ends only where it polls
  // `stop`.
  std::function<void()> end_at_once = {};
};

}  // namespace capstan::job
