#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "capstan/base/time.h"
#include "capstan/transport/event_loop.h"

namespace capstan::client {

// Runs an event loop for a program that mostly computes: whoever waits drives the loop himself, so an
// answer costs no change of threads; while nobody waits, a keeper thread looks after timers and messages
// now and then, so that heartbeats go out during a long step. Everything on the loop happens under the
// lock. Thread-safe.
class Driver {
 public:
  Driver();
  ~Driver();

  transport::EventLoop& loop() { return loop_; }

  // Runs `action` on the loop's side of the lock.
  template <class Action>
  auto with_lock(Action action) {
    const std::scoped_lock lock(mutex_);
    return action();
  }
  // Drives the loop until ready() or the deadline; true if ready.
  bool run_until(const std::function<bool()>& ready, TimePoint deadline);

  // Ends the keeper; after this only the caller drives. Call before what the loop's callbacks touch goes.
  void end_keeper();

 private:
  void keep();

  transport::EventLoop loop_;
  std::mutex mutex_;  // guards the loop and all that its callbacks touch

  std::mutex keeper_mutex_;  // guards ending_
  std::condition_variable wake_keeper_;
  bool ending_ = false;
  std::thread keeper_;
};

}  // namespace capstan::client
