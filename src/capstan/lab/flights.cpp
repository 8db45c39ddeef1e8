#include "capstan/lab/flights.h"

#include <algorithm>
#include <utility>

namespace capstan::lab {

void Flights::sent(std::size_t bucket, TimePoint at) {
  const std::lock_guard lock(mutex_);
  flights_[bucket].sent = at;
}

void Flights::arrived(std::size_t bucket, TimePoint at) {
  const std::lock_guard lock(mutex_);
  flights_[bucket].arrived = at;
}

void Flights::blocked(TimePoint begin, TimePoint end) {
  const std::lock_guard lock(mutex_);
  blocked_ += end - begin;
}

void Flights::end_step(TimePoint computed) {
  const std::lock_guard lock(mutex_);
  auto sorted = flights_;
  std::ranges::sort(sorted, {}, &Flight::sent);
  auto counted = TimePoint::min();  // everything before is counted
  for (const auto& flight : sorted) {
    const auto begin = std::max(flight.sent, counted);
    if (flight.arrived <= begin) continue;
    under_way_ += flight.arrived - begin;
    if (computed > begin) hidden_ += std::min(computed, flight.arrived) - begin;
    counted = flight.arrived;
  }
  hidden_ -= std::exchange(blocked_, {});
}

std::optional<double> Flights::hidden() const {
  const std::lock_guard lock(mutex_);
  if (under_way_ <= Duration::zero()) return {};
  return seconds(hidden_) / seconds(under_way_);
}

}  // namespace capstan::lab
