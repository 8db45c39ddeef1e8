#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <utility>

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
    samples_ += next_.samples;
    totals_.push_back(std::exchange(next_, {}));
    if (totals_.size() > updates_) totals_.pop_front();
  }

  double mean() const {  // NaN before the first update
    // Summed anew: a loss that is not finite leaves the window with its update.
    Total all;
    for (const auto& total : totals_) all.sum += total.sum, all.samples += total.samples;
    if (all.samples == 0) return std::numeric_limits<double>::quiet_NaN();
    return all.sum / static_cast<double>(all.samples);
  }
  std::uint64_t samples() const { return samples_; }  // of all updates

 private:
  struct Total {
    double sum = 0;  // Σ loss·samples
    std::uint64_t samples = 0;
  };

  const std::uint64_t updates_;
  std::deque<Total> totals_;  // of each of the last updates, the oldest first
  Total next_;
  std::uint64_t samples_ = 0;
};

}  // namespace capstan::server
