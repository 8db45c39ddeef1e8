#pragma once

#include <cstdint>

#include "capstan/base/time.h"

namespace capstan::averaging {

// What a server has measured for one bucket of one batch. Times are of the server's loop.
struct BucketTimes {
  std::uint64_t batch = 0;
  std::uint32_t bucket = 0;
  TimePoint first{}, last{};    // arrival of the first and of the last gradient; between them: stragglers
  TimePoint answered{};         // all trainers were sent the average
  Duration averaging{};         // time of the rule's average()
  std::size_t queue_depth = 0;  // operations before this bucket's last one, when that arrived
  std::uint64_t bytes_in = 0;   // of gradients, read in shared memory or received
  std::uint64_t bytes_out = 0;  // of averages, to all trainers
};

// Receives a server's measurements. Called on the thread of the server's loop.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_bucket(const BucketTimes& times) = 0;
};

}  // namespace capstan::averaging
