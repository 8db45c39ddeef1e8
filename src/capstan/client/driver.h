#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "capstan/base/time.h"
#include "capstan/transport/event_loop.h"

namespace capstan::client {

// Runs an event loop for a program that mostly computes. Everything on the loop runs under the lock.
// Thread-safe.
class Driver {
 public:
  enum class Keeper {
    // A thread that waits drives the loop itself, so an answer costs no thread switch. While no thread waits,
    // the keeper thread runs timers and messages every 50 ms, so that heartbeats are sent during a long step.
    kAtIntervals,
    // The keeper thread drives the loop, and sleeps while nothing happens: messages are handled when they
    // arrive, also while no thread waits.
    kAlways,
  };
  explicit Driver(Keeper keeper = Keeper::kAtIntervals);
  ~Driver();

  transport::EventLoop& loop() { return loop_; }

  // Runs `action` under the lock.
  template <class Action>
  auto with_lock(Action action) {
    const std::scoped_lock lock(mutex_);
    const WakeKeeper wake{*this};
    return action();
  }
  // Waits until ready() or the deadline; true if ready.
  bool run_until(const std::function<bool()>& ready, TimePoint deadline);

  // Ends the keeper thread; after this only the caller drives the loop. Call it before destroying anything
  // that the loop's callbacks use.
  void end_keeper();

 private:
  // Wakes a sleeping keeper if the action before has added what it must handle.
  struct WakeKeeper {
    Driver& driver;
    ~WakeKeeper() {
      if (driver.kind_ == Keeper::kAlways && driver.loop_.needs_wake()) driver.loop_.wake();
    }
  };

  void keep_at_intervals();
  void keep_always();

  const Keeper kind_;
  transport::EventLoop loop_;
  std::mutex mutex_;                  // guards the loop, everything that its callbacks use, and waiting_
  std::condition_variable progress_;  // the keeper has run the loop; for waiting threads with kAlways
  unsigned waiting_ = 0;

  std::mutex keeper_mutex_;  // with wake_keeper_, for kAtIntervals
  std::condition_variable wake_keeper_;
  std::atomic<bool> ending_ = false;
  std::thread keeper_;
};

}  // namespace capstan::client
