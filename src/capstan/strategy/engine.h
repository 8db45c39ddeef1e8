#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "capstan/base/ids.h"
#include "capstan/strategy/strategy.h"
#include "capstan/strategy/strategy_spec.h"

namespace capstan::strategy {

struct Merge {
  WorkerId worker;
  Sequence sequence;
  float factor = 1;
};

// Make version before + 1 from these pushes, merged in rank order.
struct Apply {
  Version before;
  std::vector<Merge> merged;
  bool accumulated = false;  // and from the accumulated sum
  UpdateRule rule;
};
// Add factor · this push to the sum that the servers keep for the next update. The worker may reuse its
// arena.
struct Accumulate {
  WorkerId worker;
  Sequence sequence;
  float factor = 1;
  bool first = false;  // begins a new sum
};
// This push is not used. The worker may reuse its arena.
struct Drop {
  WorkerId worker;
  Sequence sequence;
};
// Answer this worker's pull with the weights as they are after all decisions before this one.
struct Release {
  WorkerId worker;
  Version version;
  Version applied;  // that its newest push became or will become part of; 0 for none, or dropped
};
using Decision = std::variant<Apply, Accumulate, Drop, Release>;

struct Staleness {
  double mean = 0;
  std::uint64_t max = 0;
};

// Turns events into decisions by asking a strategy. The caller executes the decisions of one event in order,
// and completely before those of the next event. Nothing is decided before begin(), so that the first update
// does not depend on the order in which workers join. Owned by one thread; not thread-safe.
class Engine {
 public:
  using Now = std::function<TimePoint()>;

  // `later` is sorted by version. Before a switch, the old strategy applies what is buffered.
  explicit Engine(std::shared_ptr<const Strategy> strategy, std::vector<Switch> later = {},
                  Now now = SteadyClock::now);

  const Strategy& strategy() const { return *strategy_; }  // the current one
  Version version() const { return version_; }
  bool started() const { return started_; }
  std::size_t live() const { return live_.size(); }
  bool is_live(WorkerId worker) const;
  std::uint64_t dropped() const { return dropped_; }
  Staleness staleness() const;
  Staleness staleness(WorkerId worker) const;

  std::vector<Decision> join(WorkerId worker);
  // A push is also a pull: the worker waits for the answer.
  std::vector<Decision> push(const Push& push);
  std::vector<Decision> pull(WorkerId worker);
  // The worker has pushed the last phase of its step to other groups.
  std::vector<Decision> complete_step(WorkerId worker);
  // Makes one update of all buffered pushes: no worker is left that could push.
  std::vector<Decision> apply_buffered();
  bool has_buffered() const { return !buffer_.empty(); }
  // The worker has left or is lost; its buffered push, if any, is dropped.
  std::vector<Decision> remove(WorkerId worker);
  std::vector<Decision> begin();
  // Continues from a version that an earlier run reached. Called before any worker joins.
  void resume(Version version);
  // No update past this version: pushes that are buffered then, or arrive later, are dropped and answered.
  std::vector<Decision> limit(Version last);
  bool exhausted() const { return version_ >= limit_; }
  // When to call tick() if no event comes before.
  std::optional<TimePoint> deadline() const { return deadline_; }
  std::vector<Decision> tick();

 private:
  struct Waiting {
    bool waits = false;
    Version applied;
  };
  struct Tally {
    std::uint64_t count = 0, sum = 0, max = 0;
    void add(std::uint64_t stale);
    Staleness result() const;
  };

  View view() const { return {version_, live_, buffer_, slowest(), now_()}; }
  PushCount slowest() const { return push_counts_.empty() ? PushCount{} : push_counts_.begin()->first; }
  LiveWorker* find(WorkerId worker);
  void count_pushes(std::optional<PushCount> from, std::optional<PushCount> to);
  void count_push(LiveWorker& worker);
  bool apply_what_is_due(std::vector<Decision>& out);
  void settle(std::vector<Decision>& out);
  void release(std::vector<Decision>& out);
  void drop_buffered(std::vector<Decision>& out);
  void apply(std::size_t count, std::vector<Decision>& out);

  std::shared_ptr<const Strategy> strategy_;
  std::vector<Switch> later_;
  const Now now_;
  bool started_ = false;
  Version version_;
  Version limit_{std::numeric_limits<std::uint64_t>::max()};
  std::vector<LiveWorker> live_;                  // by rank
  std::vector<Push> buffer_;                      // by arrival
  std::size_t accumulated_ = 0;                   // how many of the buffer are in the servers' sum
  std::map<PushCount, std::size_t> push_counts_;  // live workers by number of pushes
  std::map<WorkerId, Waiting> waiting_;
  // Workers whose release may have become due: with thousands of workers, asking all at every push is slow.
  std::vector<WorkerId> ask_;
  bool ask_all_ = false;
  std::optional<TimePoint> deadline_;
  std::uint64_t dropped_ = 0;
  Tally staleness_;
  std::map<WorkerId, Tally> staleness_of_;
};

// One engine for each parameter group.
std::vector<Engine> make_engines(const StrategySpec& spec, const ParameterGroups& groups,
                                 const Engine::Now& now = SteadyClock::now);

}  // namespace capstan::strategy
