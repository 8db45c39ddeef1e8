#include "capstan/server/update_recorder.h"

#include <algorithm>
#include <utility>

#include "capstan/base/check.h"

namespace capstan::server {

void UpdateRecorder::pushed(const wire::Push& push, TimePoint now) {
  auto& newest = arrivals_[push.worker];
  if (newest.push.incarnation == push.incarnation && newest.push.sequence >= push.sequence) return;
  newest = {push, now, given_[push.worker]};
}

void UpdateRecorder::add(Open& open, const wire::Contribution& contribution, std::uint32_t group) const {
  const auto& [push, at, given] = arrivals_.at(contribution.worker);
  const auto base = group < given.size() ? given[group] : Version{};
  open.record.contributions.push_back(
      {contribution.worker, contribution.sequence, push.steps, push.samples, base, at});
  open.waiting.insert(contribution.worker);
}

void UpdateRecorder::accumulated(const wire::AccumulateOrder& order, std::uint64_t bytes) {
  if (order.first) sum_ = {};
  add(sum_, order.contribution, 0);
  sum_.record.bytes_in += bytes;
}

std::uint64_t UpdateRecorder::ordered(const wire::ApplyOrder& order, std::size_t queue_depth,
                                      std::uint64_t bytes) {
  auto& open = open_.emplace_back(order.accumulated ? std::exchange(sum_, {}) : Open());
  open.number = next_++;
  auto& record = open.record;
  for (const auto& contribution : order.contributions) add(open, contribution, order.group);
  std::ranges::stable_sort(record.contributions, {}, &UpdateRecord::Contribution::arrived);
  record.group = order.group;
  record.version = {order.before.value + 1};
  record.queue_depth = queue_depth;
  record.bytes_in += bytes;
  if (versions_.size() <= order.group) versions_.resize(order.group + 1);
  versions_[order.group] = record.version;
  return open.number;
}

void UpdateRecorder::applied(std::uint64_t number, Duration applying, TimePoint now) {
  const auto open = std::ranges::find(open_, number, &Open::number);
  CAPSTAN_CHECK(open != open_.end(), "an update is applied once");
  open->is_applied = true;
  open->record.applied = open->record.answered = now;
  open->record.applying = applying;
  report_complete();
}

// The first update that the worker waits for counts the bytes.
void UpdateRecorder::release(Open& open, WorkerId worker, std::uint64_t& bytes, TimePoint now) {
  if (open.waiting.erase(worker) == 0) return;
  open.record.bytes_out += std::exchange(bytes, 0);
  open.record.answered = now;
}

void UpdateRecorder::answered(WorkerId worker, std::uint64_t bytes, TimePoint now) {
  for (auto& open : open_) release(open, worker, bytes, now);
  release(sum_, worker, bytes, now);
  report_complete();
}

void UpdateRecorder::ended(WorkerId worker, TimePoint now) {
  answered(worker, 0, now);
}

void UpdateRecorder::report_complete() {
  std::erase_if(open_, [&](const Open& open) {
    if (!open.is_applied || !open.waiting.empty()) return false;
    observer_.on_update(open.record);
    return true;
  });
}

}  // namespace capstan::server
