#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "capstan/base/time.h"

namespace capstan::lab {

// When the buckets of a step were under way, and how much of that time the backward pass has hidden.
// Thread-safe.
class Flights {
 public:
  explicit Flights(std::size_t buckets) : flights_(buckets) {}

  void sent(std::size_t bucket, TimePoint at);
  void arrived(std::size_t bucket, TimePoint at);
  // The backward pass was interrupted to wait for a bucket that is under way.
  void blocked(TimePoint begin, TimePoint end);
  // All buckets have arrived; the backward pass computed until then.
  void end_step(TimePoint computed);

  // The part of the time with a bucket under way in which the backward pass still computed, over all steps;
  // none if none was under way.
  std::optional<double> hidden() const;

 private:
  struct Flight {
    TimePoint sent{}, arrived{};
  };

  mutable std::mutex mutex_;
  std::vector<Flight> flights_;  // by bucket
  Duration blocked_{};           // in this step
  Duration under_way_{}, hidden_{};
};

}  // namespace capstan::lab
