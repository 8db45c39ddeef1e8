#pragma once

#include "capstan/base/time.h"

namespace capstan::cluster {

// Detects that this process itself did not run for a while (stopped, swapped out, an overloaded machine):
// messages of peers may wait unread, so no peer may be declared silent before they are processed. Not
// thread-safe.
class PauseDetector {
 public:
  PauseDetector(Duration interval, TimePoint now) : interval_(interval), last_(now) {}

  // Called once per interval. True if the last call was at least three intervals ago.
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
