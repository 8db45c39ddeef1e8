#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "capstan/base/time.h"

namespace capstan::testing {

// Receives the deliveries of a Background: functions wait here until the test's thread runs them.
class Mailbox {
 public:
  void deliver(std::function<void()> function) {
    {
      const std::lock_guard lock(mutex_);
      functions_.push_back(std::move(function));
    }
    arrived_.notify_one();
  }
  std::function<void(std::function<void()>)> deliverer() {
    return [this](std::function<void()> function) { deliver(std::move(function)); };
  }

  // Runs deliveries until the condition holds; false after 30 s.
  bool run_until(const std::function<bool()>& condition) {
    const auto give_up = SteadyClock::now() + std::chrono::seconds(30);
    while (!condition()) {
      std::unique_lock lock(mutex_);
      if (!arrived_.wait_until(lock, give_up, [&] { return !functions_.empty(); })) return false;
      const auto function = std::move(functions_.front());
      functions_.pop_front();
      lock.unlock();
      function();
    }
    return true;
  }
  void run_waiting() {
    while (!functions_.empty()) {
      functions_.front()();
      functions_.pop_front();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::function<void()>> functions_;
};

}  // namespace capstan::testing
