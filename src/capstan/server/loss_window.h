#pragma once

#include <cstdint>
#include <deque>
#include <limits>

#include "capstan/wire/messages.h"

namespace capstan::server {

// The mean training loss over the samples of the last updates. Not thread-safe.
class LossWindow {
 public:
  explicit LossWindow(std::uint64_t updates) : updates_(updates) {}

  // Adds a push to the next update.
  void add(const wire::Push& push) {
    next_.sum += static_cast<double>(push.loss) * push.samples;
    next_.samples += push.samples;
  }
  // The next update is complete.
  void close_update() {
    totals_.push_back({totals_.back().sum + next_.sum, totals_.back().samples + next_.samples});
    next_ = {};
    if (totals_.size() > updates_ + 1) totals_.pop_front();
  }

  double mean() const {  // NaN before the first update
    const auto &from = totals_.front(), &to = totals_.back();
    if (to.samples == from.samples) return std::numeric_limits<double>::quiet_NaN();
    return (to.sum - from.sum) / static_cast<double>(to.samples - from.samples);
  }
  std::uint64_t samples() const { return totals_.back().samples; }  // of all updates

 private:
  struct Total {
    double sum = 0;  // Σ loss·samples
    std::uint64_t samples = 0;
  };

  const std::uint64_t updates_;
  std::deque<Total> totals_ = {Total{}};  // after each of the last updates, the oldest first
  Total next_;
};

}  // namespace capstan::server
