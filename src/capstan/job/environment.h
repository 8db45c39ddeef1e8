#pragma once

#include <functional>

#include "capstan/base/time.h"
#include "capstan/job/events.h"

namespace capstan::job {

// How often the user has asked a job to end: once means finish the step and save, twice means end at once.
// Not thread-safe.
class StopToken {
 public:
  virtual ~StopToken() = default;
  virtual int requests() = 0;
  // Readable when a request is there; -1 where the token has none, and is to be asked now and then.
  virtual int fd() const { return -1; }
};

using Now = std::function<TimePoint()>;

// What a job needs of the program that runs it, which must outlive the job. A job neither prints nor reads
// signals.
struct Environment {
  Events& events;
  StopToken& stop;
  Now now = SteadyClock::now;
};

}  // namespace capstan::job
