#pragma once

#include "capstan/transport/event_loop.h"

namespace capstan::testing {

// An event loop whose time passes only when the test says so. Not thread-safe.
class FakeTime {
 public:
  FakeTime() : loop_([this] { return now_; }) {}

  transport::EventLoop& loop() { return loop_; }
  TimePoint now() const { return now_; }

  // Runs what is ready, until nothing is.
  void settle() {
    while (loop_.run_once(TimePoint::min())) {
    }
  }
  // Lets time pass in steps, and runs what is ready after each.
  void pass(Duration time, Duration step = std::chrono::milliseconds(10)) {
    settle();
    for (const auto end = now_ + time; now_ < end;) {
      now_ += std::min(step, end - now_);
      settle();
    }
  }
  // Time passes without a turn of the loop, as for a process that was stopped.
  void jump(Duration time) { now_ += time; }

 private:
  TimePoint now_{std::chrono::hours(1)};
  transport::EventLoop loop_;
};

}  // namespace capstan::testing
