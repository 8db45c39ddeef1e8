#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "capstan/base/time.h"
#include "capstan/transport/event_loop.h"

namespace capstan::client {

// Runs an event loop for a program that mostly computes. A thread that waits drives the loop itself, so an
// answer costs no thread switch. While no thread waits, a keeper thread runs timers and messages every 50 ms,
// so that heartbeats are sent during a long step. Everything on the loop runs under the lock. Thread-safe.
class Driver {
 public:
  Driver();
  ~Driver();

  transport::EventLoop& loop() { return loop_; }

  // Runs `action` under the lock.
  template <class Action>
  auto with_lock(Action action) {
    const std::scoped_lock lock(mutex_);
    return action();
  }
  // Drives the loop until ready() or the deadline; true if ready.
  bool run_until(const std::function<bool()>& ready, TimePoint deadline);

  // Ends the keeper thread; after this only the caller drives the loop. Call it before destroying anything
  // that the loop's callbacks use.
  void end_keeper();

 private:
  void keep();

  transport::EventLoop loop_;
  std::mutex mutex_;  // guards the loop and everything that its callbacks use

  std::mutex keeper_mutex_;  // guards ending_
  std::condition_variable wake_keeper_;
  bool ending_ = false;
  std::thread keeper_;
};

}  // namespace capstan::client
