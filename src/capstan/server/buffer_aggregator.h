#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "capstan/base/flat_layout.h"
#include "capstan/base/ids.h"

namespace capstan::server {

// The buffers of the workers (running means and variances), of which each has its own: asks for them when
// somebody wants their mean, and forms it. Owned by the leader's loop; not thread-safe.
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
  // `done` runs once every worker that is here now has told its buffers, or is gone: at once where nobody
  // is, or nothing is to be told. The mean is that over those workers, without lost ones; where nobody was
  // here, over those that have left.
  void want(Done done);
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
  };

  void settle();
  std::vector<float> mean(const Waiter& waiter) const;

  FlatLayout layout_;
  bool agreed_ = false;
  std::vector<float> newest_;
  std::map<WorkerId, Row> workers_;
  std::vector<Waiter> waiters_;
};

}  // namespace capstan::server
