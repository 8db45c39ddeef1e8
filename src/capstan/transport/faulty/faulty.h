#pragma once

#include <cstdint>
#include <memory>

#include "capstan/base/time.h"
#include "capstan/transport/connection.h"
#include "capstan/transport/event_loop.h"

// Wraps any connection and does to what it sends what a bad network would, from a seed.
namespace capstan::transport::faulty {

// Each message takes five numbers in [0, 1) from Random(seed), in this order: drop, duplicate, reorder,
// delay, and the part of max_delay. A dropped message's `sent` still runs; a doubled one's runs after both.
// The message that overtakes is not overtaken itself; one that no other follows goes out after max_delay.
struct Faults {
  std::uint64_t seed = 1;
  double drop = 0;       // probability that a message vanishes
  double duplicate = 0;  // probability that a message arrives twice
  double reorder = 0;    // probability that a message is overtaken by the next one
  double delay = 0;      // probability that a message (and so all after it) waits
  Duration max_delay = std::chrono::milliseconds(5);
  std::uint64_t cut_after = 0;  // messages after which the connection breaks; 0: never
};

// A message with a segment is delayed with the others, but never dropped, doubled or overtaken.
std::unique_ptr<Connection> wrap(EventLoop& loop, std::unique_ptr<Connection> inner, const Faults& faults);

}  // namespace capstan::transport::faulty
