#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "capstan/base/ids.h"
#include "capstan/strategy/strategy.h"

namespace capstan::strategy {

struct Merge {
  WorkerId worker;
  Sequence sequence;
  float factor = 1;
};

// Make version before + 1 of these pushes, merged in rank order.
struct Apply {
  Version before;
  std::vector<Merge> merged;
  double rate = 1;  // what the learning rate is multiplied by
};
// This push is not used. Its arena is the worker's again.
struct Drop {
  WorkerId worker;
  Sequence sequence;
};
// Answer the pull of this worker with the weights as they are after all decisions before this one.
struct Release {
  WorkerId worker;
  Version version;
  Version applied;  // what this worker's newest push became part of; 0 for none, or dropped
};
using Decision = std::variant<Apply, Drop, Release>;

struct Staleness {
  double mean = 0;
  std::uint64_t max = 0;
};

// Turns events into decisions by asking a strategy. The decisions of one event are to be carried out in
// order, and completely before those of the next event. Nothing is decided before begin(), so that the
// first update does not depend on who came first.
// Owned by one thread; not thread-safe.
class Engine {
 public:
  explicit Engine(std::unique_ptr<Strategy> strategy);

  const Strategy& strategy() const { return *strategy_; }
  Version version() const { return version_; }
  bool started() const { return started_; }
  std::size_t live() const { return live_.size(); }
  bool is_live(WorkerId worker) const;
  std::uint64_t dropped() const { return dropped_; }
  Staleness staleness() const;

  std::vector<Decision> join(WorkerId worker);
  // A push is also a pull: the worker waits for the answer.
  std::vector<Decision> push(const Push& push);
  std::vector<Decision> pull(WorkerId worker);
  // The worker has left or is lost; its buffered push, if any, is dropped.
  std::vector<Decision> remove(WorkerId worker);
  std::vector<Decision> begin();
  // Goes on from a version that an earlier run reached. Before anybody joins.
  void resume(Version version) { version_ = version; }
  // No update past this version: what is buffered then, or comes later, is dropped and answered.
  std::vector<Decision> limit(Version last);
  bool exhausted() const { return version_ >= limit_; }

 private:
  struct Waiting {
    bool waits = false;
    Version applied;
  };

  View view() const { return {version_, live_, buffer_}; }
  LiveWorker* find(WorkerId worker);
  void settle(std::vector<Decision>& out);
  void drop_buffered(std::vector<Decision>& out);
  void apply(std::size_t count, std::vector<Decision>& out);

  const std::unique_ptr<Strategy> strategy_;
  bool started_ = false;
  Version version_;
  Version limit_{std::numeric_limits<std::uint64_t>::max()};
  std::vector<LiveWorker> live_;  // by rank
  std::vector<Push> buffer_;      // by arrival
  std::map<WorkerId, Waiting> waiting_;
  std::uint64_t dropped_ = 0;
  std::uint64_t stale_count_ = 0, stale_sum_ = 0, stale_max_ = 0;
};

}  // namespace capstan::strategy
