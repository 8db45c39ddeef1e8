#pragma once

#include "capstan/base/time.h"

namespace capstan::cluster {

// Notices that this process itself did not run for a while (stopped, swapped out, a starved machine): no peer
// had a chance to be heard, so none may be judged silent until messages have had a turn. Not thread-safe.
class PauseDetector {
 public:
  PauseDetector(Duration interval, TimePoint now) : interval_(interval), last_(now) {}

  // To be called once per interval. True where the call before is more than three intervals ago.
  bool was_paused(TimePoint now) {
    const bool paused = now - last_ >= 3 * interval_;
    last_ = now;
    return paused;
  }

 private:
  const Duration interval_;
  TimePoint last_;
};

}  // namespace capstan::cluster
