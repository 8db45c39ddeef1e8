#pragma once

#include <chrono>

namespace capstan {

using SteadyClock = std::chrono::steady_clock;
using TimePoint = SteadyClock::time_point;
using Duration = SteadyClock::duration;

inline double seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}

inline Duration from_seconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}

}  // namespace capstan
