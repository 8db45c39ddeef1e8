#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "capstan/base/ids.h"
#include "capstan/server/pool.h"
#include "capstan/store/dense_shard.h"
#include "capstan/transport/event_loop.h"

namespace capstan::server {

// Carries out updates and deliveries on one shard, strictly in the order given, off the event thread
// where they are long. So a delivery is always of one version, and nothing waits on a lock.
// Owned by the event loop's thread; every callback runs there.
class ShardExecutor {
 public:
  using Done = std::function<void()>;
  using KeepAlive = std::shared_ptr<const void>;  // owner of memory that an operation touches

  // A pass that touches no more than this many elements runs on the event thread: waking another one would
  // take longer.
  static constexpr std::size_t kInlineElements = std::size_t{32} * 1024;

  ShardExecutor(transport::EventLoop& loop, std::unique_ptr<store::DenseShard> shard, unsigned threads,
                std::size_t inline_elements = kInlineElements);

  // Makes one update of one group by a rule, with `accumulated` of what was accumulated too. The
  // contributions are read until `done` runs.
  void apply(std::size_t group, const optimizer::UpdateIndex& index, const UpdateRule& rule,
             std::vector<optimizer::Contribution> contributions, bool accumulated,
             std::vector<KeepAlive> owners, Done done);
  // Adds a contribution to the sum for the next update that takes it, or begins a new one with it.
  void accumulate(const optimizer::Contribution& contribution, bool first, KeepAlive owner, Done done);
  // Copies the weights, as they are after all that was given before, to `destination`; null copies nothing.
  void deliver(float* destination, KeepAlive owner, Done done);

  // Copies the weights, as they are after all that was given before, and the optimizer's state: one
  // destination for each.
  void save(std::vector<float*> destinations, KeepAlive owner, Done done);

  // While anything is pinned, no update starts: the weights are being read in place.
  void pin() { ++pins_; }
  void unpin();
  // Nothing is under way, and nothing waits.
  bool is_idle() const { return !busy_ && queue_.empty(); }
  // Nothing that still waits will be done: the server ends.
  void abandon() { queue_.clear(); }

  const store::DenseShard& shard() const { return *shard_; }
  store::DenseShard& shard() { return *shard_; }

 private:
  struct Operation {
    enum class Kind { kApply, kAccumulate, kDeliver, kSave };
    Kind kind = Kind::kApply;
    std::size_t group = 0;
    optimizer::UpdateIndex index = Version{};
    UpdateRule rule = {};
    bool first = false;  // of a accumulate: it begins a new sum
    std::vector<optimizer::Contribution> contributions = {};
    std::vector<float*> destinations = {};
    std::vector<KeepAlive> owners = {};
    Done done = {};
  };
  // What runs as one pass over the shard: at most one update, and the deliveries right behind it unless the
  // update is of one group of several; or a accumulate; or a save, for which nobody is to wait.
  struct Pass {
    std::vector<Operation> operations;
    std::vector<float*> destinations;
  };

  void pump();
  Pass next_pass();
  void run_piece(const Pass& pass, std::size_t chunk);
  void finish(const Pass& pass);

  transport::EventLoop& loop_;
  std::unique_ptr<store::DenseShard> shard_;
  const std::size_t inline_elements_;
  std::deque<Operation> queue_;
  std::size_t pins_ = 0;
  bool busy_ = false;
  bool pumping_ = false;
  std::shared_ptr<ShardExecutor*> self_;  // null once this is gone, for what the pool still posts
  Pool pool_;                             // last: its threads end first
};

}  // namespace capstan::server
