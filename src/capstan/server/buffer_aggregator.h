#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "capstan/base/flat_layout.h"
#include "capstan/base/ids.h"
#include "capstan/base/time.h"

namespace capstan::server {

// The mean of the workers' buffers (running means and variances, of which each worker has its own): asks for
// them when the mean is wanted, and forms it. Owned by the leader's loop; not thread-safe.
class BufferAggregator {
 public:
  using Done = std::function<void(std::vector<float> mean)>;

  // The first worker brings the layout; others must have the same. A line that says what differs, or empty.
  std::string difference(const FlatLayout& layout) const;
  void agree(const FlatLayout& layout);
  const FlatLayout& layout() const { return layout_; }
  bool is_empty() const { return layout_.size() == 0; }

  // What workers begin with: a checkpoint's mean. Later the newest mean. Empty where none is known.
  void restore(const FlatLayout& layout, std::vector<float> mean);
  const std::vector<float>& newest() const { return newest_; }

  void joined(WorkerId worker) { workers_[worker] = Row{}; }
  void gone(WorkerId worker, bool lost);
  // `done` runs once every worker that is here now has told its buffers, or is gone: at once where none is
  // here, or nothing is to be told; at the deadline with what is known by then, so that one straggler does
  // not hold up all others. The mean is that over those workers, without lost ones; where none was here, over
  // those that have left.
  void want(Done done, TimePoint deadline);
  void tick(TimePoint now);
  // To be told with the next weights: send yours.
  bool wants(WorkerId worker) const;
  void told(WorkerId worker, std::vector<float> values);

 private:
  struct Row {
    bool here = true;
    std::uint64_t times = 0;  // told
    std::vector<float> values;
  };
  struct Waiter {
    std::map<WorkerId, std::uint64_t> needs;  // to have told so many times
    Done done;
    TimePoint deadline;
  };

  void settle(TimePoint now = TimePoint::min());
  std::vector<float> mean(const Waiter& waiter) const;

  FlatLayout layout_;
  bool agreed_ = false;
  std::vector<float> newest_;
  std::map<WorkerId, Row> workers_;
  std::vector<Waiter> waiters_;
};

}  // namespace capstan::server
