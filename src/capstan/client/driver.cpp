#include "capstan/client/driver.h"

namespace capstan::client {
namespace {

constexpr auto kKeeperInterval = std::chrono::milliseconds(50);

}  // namespace

Driver::Driver(Keeper keeper)
    : kind_(keeper), keeper_([this] { kind_ == Keeper::kAlways ? keep_always() : keep_at_intervals(); }) {}

Driver::~Driver() {
  end_keeper();
}

void Driver::end_keeper() {
  {
    const std::scoped_lock lock(keeper_mutex_);
    ending_ = true;
  }
  wake_keeper_.notify_all();
  loop_.wake();
  if (keeper_.joinable()) keeper_.join();
}

bool Driver::run_until(const std::function<bool()>& ready, TimePoint deadline) {
  std::unique_lock lock(mutex_);
  if (kind_ == Keeper::kAlways) {
    ++waiting_;
    // wait_until() overflows with the largest deadline.
    const bool is_ready = deadline == TimePoint::max() ? (progress_.wait(lock, ready), true)
                                                       : progress_.wait_until(lock, deadline, ready);
    --waiting_;
    return is_ready;
  }
  while (!ready()) {
    if (SteadyClock::now() >= deadline) return false;
    loop_.run_once(deadline);
  }
  return true;
}

void Driver::keep_at_intervals() {
  std::unique_lock lock(keeper_mutex_);
  while (!wake_keeper_.wait_for(lock, kKeeperInterval, [this] { return ending_.load(); })) {
    lock.unlock();
    if (mutex_.try_lock()) {
      loop_.run_once(TimePoint::min());
      mutex_.unlock();
    }
    lock.lock();
  }
}

void Driver::keep_always() {
  while (!ending_) {
    std::unique_lock lock(mutex_);
    loop_.run_once(TimePoint::min());
    const auto timeout = loop_.prepare_sleep();
    const bool has_waiting = waiting_ > 0;
    lock.unlock();
    if (has_waiting) progress_.notify_all();
    // Checked again: run_once() may have taken the wake of end_keeper().
    if (timeout && !ending_) loop_.sleep(*timeout);
  }
}

}  // namespace capstan::client
