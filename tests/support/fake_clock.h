#pragma once

#include "capstan/transport/event_loop.h"

namespace capstan::testing {

// An event loop with a clock that only the test advances. Not thread-safe.
class FakeTime {
 public:
  FakeTime() : loop_([this] { return now_; }) {}

  transport::EventLoop& loop() { return loop_; }
  TimePoint now() const { return now_; }

  // Runs the loop until no event is ready.
  void settle() {
    while (loop_.run_once(TimePoint::min())) {
    }
  }
  // Advances the clock in steps, and runs the loop after each.
  void pass(Duration time, Duration step = std::chrono::milliseconds(10)) {
    settle();
    for (const auto end = now_ + time; now_ < end;) {
      now_ += std::min(step, end - now_);
      settle();
    }
  }
  // Advances the clock without running the loop, as for a stopped process.
  void jump(Duration time) { now_ += time; }

 private:
  TimePoint now_{std::chrono::hours(1)};
  transport::EventLoop loop_;
};

}  // namespace capstan::testing
