#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "capstan/base/ids.h"
#include "capstan/base/time.h"
#include "capstan/layout.h"

namespace capstan::server {

// Collects the workers' buffers (running means and variances; each worker has its own) on request and
// computes their mean. Owned by the leader's loop; not thread-safe.
class BufferAggregator {
 public:
  using Done = std::function<void(std::vector<float> mean)>;
  // For a worker in a long step; then the mean is over the buffers received so far.
  static constexpr auto kTimeout = std::chrono::seconds(10);

  // The first worker sets the layout; all others must have the same. difference() returns one line that
  // describes the first difference, or an empty string.
  std::string difference(const FlatLayout& layout) const;
  void set_layout(const FlatLayout& layout);
  const FlatLayout& layout() const { return layout_; }
  bool is_empty() const { return layout_.size() == 0; }

  // newest() is the mean that a joining worker starts with: the checkpoint's, then the last one computed.
  // Empty if there is none.
  void restore(const FlatLayout& layout, std::vector<float> mean);
  const std::vector<float>& newest() const { return newest_; }

  void joined(WorkerId worker) { workers_[worker] = Row{}; }
  void worker_ended(WorkerId worker, bool lost);
  // `done` runs once every worker that is present now has sent its buffers or has ended: at once if no worker
  // is present or the model has no buffers; at the deadline with the buffers received so far, so that one
  // straggler does not delay the others. The mean is over these workers without the lost ones; if none was
  // present, over those that have left.
  void request(Done done, TimePoint deadline);
  void tick(TimePoint now);
  // The next weights for this worker request its buffers.
  bool is_requested(WorkerId worker) const;
  void receive(WorkerId worker, std::vector<float> values);

 private:
  struct Row {
    bool present = true;
    std::uint64_t times = 0;  // that it has sent its buffers
    std::vector<float> values;
  };
  struct Waiter {
    std::map<WorkerId, std::uint64_t> needs;  // `times` that each worker must reach
    Done done;
    TimePoint deadline;
  };

  void settle(TimePoint now = TimePoint::min());
  std::vector<float> mean(const Waiter& waiter) const;

  FlatLayout layout_;
  bool has_layout_ = false;
  std::vector<float> newest_;
  std::map<WorkerId, Row> workers_;
  std::vector<Waiter> waiters_;
};

}  // namespace capstan::server
