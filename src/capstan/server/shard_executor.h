#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "capstan/base/ids.h"
#include "capstan/base/time.h"
#include "capstan/server/pool.h"
#include "capstan/store/dense_shard.h"
#include "capstan/transport/event_loop.h"

namespace capstan::server {

// Runs updates and deliveries on one shard, strictly in sequence; long ones on a pool of threads. So a
// delivery is always of one version, and nothing waits on a lock. Owned by the event loop's thread; every
// callback runs there.
class ShardExecutor {
 public:
  using Done = std::function<void()>;
  using KeepAlive = std::shared_ptr<const void>;  // owner of memory that an operation touches

  // A pass over at most this many elements runs on the event thread: waking another thread takes longer.
  static constexpr std::size_t kInlineElements = std::size_t{32} * 1024;

  ShardExecutor(transport::EventLoop& loop, std::unique_ptr<store::DenseShard> shard, unsigned threads,
                std::size_t inline_elements = kInlineElements);

  // Makes one update of one group by a rule; `accumulated` adds the accumulated sum to the contributions,
  // which are read until `done` runs.
  void apply(std::size_t group, const optimizer::UpdateIndex& index, const UpdateRule& rule,
             std::vector<optimizer::Contribution> contributions, bool accumulated,
             std::vector<KeepAlive> owners, Done done);
  // Adds a contribution to the sum for the next update; `first` starts a new sum.
  void accumulate(const optimizer::Contribution& contribution, bool first, KeepAlive owner, Done done);
  // Copies the weights, after all earlier operations, to `destination`; null copies nothing.
  void deliver(float* destination, KeepAlive owner, Done done);

  // Copies the weights and the optimizer's state, after all earlier operations: one destination per array.
  void save(std::vector<float*> destinations, KeepAlive owner, Done done);

  // Other work on the shard at this place in the queue.
  struct Work {
    std::size_t pieces = 0;
    std::size_t elements = 0;  // that they touch
    std::function<void(std::size_t piece)> run = {};
  };
  // `begin` runs on the loop's thread when all earlier operations are done.
  void run(bool updates, std::function<Work()> begin, std::vector<KeepAlive> owners, Done done);

  // While a pin is held, no update starts: the weights are being read in place.
  void pin() { ++pins_; }
  void unpin();
  // From now on, pass_time() is valid in callbacks of updates: the duration of their pass.
  void measure_passes() { measures_ = true; }
  Duration pass_time() const { return pass_time_; }
  // Operations that are running or queued.
  std::size_t depth() const { return queue_.size() + (busy_ ? 1 : 0); }
  // No operation is running or queued.
  bool is_idle() const { return !busy_ && queue_.empty(); }
  // Drops queued operations: the server ends.
  void abandon() { queue_.clear(); }

  const store::DenseShard& shard() const { return *shard_; }
  store::DenseShard& shard() { return *shard_; }

 private:
  struct Operation {
    enum class Kind { kApply, kAccumulate, kDeliver, kSave, kWork };
    Kind kind = Kind::kApply;
    std::size_t group = 0;
    optimizer::UpdateIndex index = Version{};
    UpdateRule rule = {};
    bool first = false;  // kAccumulate: starts a new sum
    std::vector<optimizer::Contribution> contributions = {};
    std::vector<float*> destinations = {};
    std::vector<KeepAlive> owners = {};
    Done done = {};
    bool updates = false;  // kWork
    std::function<Work()> begin = {};
    Work work = {};  // once it has begun
  };
  // One pass over the shard: an update with the deliveries directly behind it (only the update if there are
  // several groups), or deliveries, or one accumulation, one save or other work. A save takes no deliveries
  // along, so that no worker waits for it.
  struct Pass {
    std::vector<Operation> operations;
    std::vector<float*> destinations;
    TimePoint begin{}, end{};  // if they are measured
  };

  // Of a pass: its chunks, and the elements that they touch.
  std::pair<std::size_t, std::size_t> size_of(const Pass& pass) const;
  bool is_pinned(const Operation& operation) const;
  void pump();
  Pass next_pass();
  void run_piece(const Pass& pass, std::size_t chunk);
  void finish(const Pass& pass);
  TimePoint measured_now() const { return measures_ ? SteadyClock::now() : TimePoint(); }

  transport::EventLoop& loop_;
  std::unique_ptr<store::DenseShard> shard_;
  const std::size_t inline_elements_;
  std::deque<Operation> queue_;
  std::size_t pins_ = 0;
  bool measures_ = false;
  Duration pass_time_{};
  bool busy_ = false;
  bool pumping_ = false;
  std::shared_ptr<ShardExecutor*> self_;  // expires with this object, for functions that the pool posts
  Pool pool_;                             // last: its threads end first
};

}  // namespace capstan::server
