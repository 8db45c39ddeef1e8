#include "capstan/server/buffer_aggregator.h"

#include <algorithm>

#include "capstan/base/check.h"

namespace capstan::server {

std::string BufferAggregator::difference(const FlatLayout& layout) const {
  return has_layout_ ? layout_.difference(layout) : "";
}

void BufferAggregator::set_layout(const FlatLayout& layout) {
  CAPSTAN_CHECK(difference(layout).empty(), "all workers have the same layout");
  layout_ = layout;
  has_layout_ = true;
}

void BufferAggregator::restore(const FlatLayout& layout, std::vector<float> mean) {
  CAPSTAN_CHECK(mean.size() == layout.size(), "the mean covers the whole layout");
  layout_ = layout;
  has_layout_ = true;
  newest_ = std::move(mean);
}

void BufferAggregator::worker_ended(WorkerId worker, bool lost) {
  const auto row = workers_.find(worker);
  if (row == workers_.end()) return;
  row->second.present = false;
  if (lost) workers_.erase(row);
  settle();
}

void BufferAggregator::request(Done done, TimePoint deadline) {
  Waiter waiter{{}, std::move(done), deadline};
  for (const auto& [worker, row] : workers_) {
    if (row.present && !is_empty()) waiter.needs[worker] = row.times + 1;
  }
  waiters_.push_back(std::move(waiter));
  settle();
}

bool BufferAggregator::is_requested(WorkerId worker) const {
  const auto row = workers_.find(worker);
  return row != workers_.end() && std::ranges::any_of(waiters_, [&](const Waiter& w) {
           const auto need = w.needs.find(worker);
           return need != w.needs.end() && need->second > row->second.times;
         });
}

void BufferAggregator::receive(WorkerId worker, std::vector<float> values) {
  const auto row = workers_.find(worker);
  if (row == workers_.end()) return;
  ++row->second.times;
  row->second.values = std::move(values);
  settle();
}

void BufferAggregator::tick(TimePoint now) {
  settle(now);
}

void BufferAggregator::settle(TimePoint now) {
  const auto is_done = [&](const Waiter& waiter) {
    return now >= waiter.deadline || std::ranges::all_of(waiter.needs, [&](const auto& need) {
             const auto row = workers_.find(need.first);
             return row == workers_.end() || !row->second.present || row->second.times >= need.second;
           });
  };
  // Removed before the callbacks run: a callback may call request() again.
  const auto first_done = std::ranges::stable_partition(waiters_, std::not_fn(is_done)).begin();
  std::vector<Waiter> done(std::make_move_iterator(first_done), std::make_move_iterator(waiters_.end()));
  waiters_.erase(first_done, waiters_.end());
  for (const auto& waiter : done) {
    newest_ = mean(waiter);
    waiter.done(newest_);
  }
}

std::vector<float> BufferAggregator::mean(const Waiter& waiter) const {
  std::vector<const Row*> rows;
  for (const auto& [worker, row] : workers_) {
    if (!row.values.empty() && (waiter.needs.empty() || waiter.needs.contains(worker))) rows.push_back(&row);
  }
  if (rows.empty()) return newest_;  // first: the layout alone is a worker's claim, and may be huge
  std::vector<double> sum(layout_.size());
  for (const auto* row : rows) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += row->values[i];
  }
  const auto count = static_cast<double>(rows.size());
  std::vector<float> result(sum.size());
  std::ranges::transform(sum, result.begin(), [&](double s) { return static_cast<float>(s / count); });
  return result;
}

}  // namespace capstan::server
