#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "capstan/base/time.h"
#include "capstan/transport/connection.h"
#include "capstan/transport/event_loop.h"

// Wraps a connection and applies the faults of a bad network to what it sends, determined by a seed.
namespace capstan::transport::faulty {

// Each message takes five numbers in [0, 1) from Random(seed), in this order: drop, duplicate, reorder,
// delay, and the part of max_delay. A dropped message's `sent` still runs; a duplicated one's runs after both
// copies. A message that overtakes another is not overtaken itself; one that no other follows is sent after
// max_delay.
struct Faults {
  std::uint64_t seed = 1;
  double drop = 0;       // probability that a message is lost
  double duplicate = 0;  // probability that a message arrives twice
  double reorder = 0;    // probability that a message is overtaken by the next one
  double delay = 0;      // probability that a message (and so all after it) waits
  Duration max_delay = std::chrono::milliseconds(5);
  std::uint64_t cut_after = 0;  // messages after which the connection breaks; 0: never
  // Where given, counts the messages to which the plan does something; may be shared.
  std::shared_ptr<std::atomic<std::uint64_t>> count = {};
};

// A message with a segment is delayed like the others, but never dropped, duplicated or overtaken.
std::unique_ptr<Connection> wrap(EventLoop& loop, std::unique_ptr<Connection> inner, const Faults& faults);

}  // namespace capstan::transport::faulty
