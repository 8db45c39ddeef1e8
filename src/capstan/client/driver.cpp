#include "capstan/client/driver.h"

namespace capstan::client {
namespace {

constexpr auto kKeeperInterval = std::chrono::milliseconds(50);

}  // namespace

Driver::Driver() : keeper_([this] { keep(); }) {}

Driver::~Driver() {
  end_keeper();
}

void Driver::end_keeper() {
  {
    const std::scoped_lock lock(keeper_mutex_);
    ending_ = true;
  }
  wake_keeper_.notify_all();
  if (keeper_.joinable()) keeper_.join();
}

bool Driver::run_until(const std::function<bool()>& ready, TimePoint deadline) {
  const std::scoped_lock lock(mutex_);
  while (!ready()) {
    if (SteadyClock::now() >= deadline) return false;
    loop_.run_once(deadline);
  }
  return true;
}

void Driver::keep() {
  std::unique_lock lock(keeper_mutex_);
  while (!wake_keeper_.wait_for(lock, kKeeperInterval, [this] { return ending_; })) {
    lock.unlock();
    if (mutex_.try_lock()) {
      loop_.run_once(TimePoint::min());
      mutex_.unlock();
    }
    lock.lock();
  }
}

}  // namespace capstan::client
