#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "capstan/base/time.h"

namespace capstan::testing {

// After this long a test fails instead of waiting on: far longer than anything takes on a busy machine.
inline constexpr auto kTestTimeout = std::chrono::seconds(60);

// Waits until `condition` holds, for changes that no event announces; false after kTestTimeout.
inline bool eventually(const std::function<bool()>& condition) {
  const auto give_up = SteadyClock::now() + kTestTimeout;
  while (!condition()) {
    if (SteadyClock::now() >= give_up) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace capstan::testing
