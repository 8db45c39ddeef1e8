#pragma once

#include "capstan/base/time.h"

namespace capstan::cluster {

// Detects that this process itself did not run for a while (stopped, swapped out, an overloaded machine):
// messages of peers may wait unread, and peers on the same machine may not have run either. So the silence of
// a peer is counted from the end of the pause. Not thread-safe.
class PauseDetector {
 public:
  PauseDetector(Duration interval, TimePoint now) : interval_(interval), last_(now), running_since_(now) {}

  // Called once per interval. The end of the last pause: a call at least three intervals after the one
  // before.
  TimePoint running_since(TimePoint now) {
    if (now - last_ >= 3 * interval_) running_since_ = now;
    last_ = now;
    return running_since_;
  }

 private:
  const Duration interval_;
  TimePoint last_, running_since_;
};

}  // namespace capstan::cluster
