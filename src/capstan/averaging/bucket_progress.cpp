#include "capstan/averaging/bucket_progress.h"

#include <algorithm>

#include <fmt/format.h>

namespace capstan::averaging {

Result<BucketProgress::Kind> BucketProgress::classify(WorkerId worker, std::uint64_t batch) const {
  const bool has_sent = has_sent_[worker.value];
  if (pending_ && batch == *pending_) return has_sent ? Kind::kRepeated : Kind::kNew;
  if (averaged_ && batch <= *averaged_) return batch < *averaged_ || has_sent ? Kind::kOld : Kind::kAveraged;
  if (!pending_) return Kind::kNew;
  return Status::malformed(
      fmt::format("batch {} of bucket {} while batch {} is incomplete", batch, bucket_, *pending_));
}

std::uint32_t BucketProgress::take(WorkerId worker, std::uint64_t batch) {
  pending_ = batch;
  has_sent_[worker.value] = true;
  expect_answer(worker);
  return ++sent_;
}

void BucketProgress::set_averaged() {
  averaged_ = pending_;
  clear_pending();
}

bool BucketProgress::take_answer(WorkerId worker) {
  const bool waits = waits_[worker.value];
  waits_[worker.value] = false;
  return waits;
}

void BucketProgress::clear_pending() {
  pending_.reset();
  sent_ = 0;
  std::fill(has_sent_.begin(), has_sent_.end(), false);
}

void BucketProgress::reset() {
  averaged_.reset();
  clear_pending();
  std::fill(waits_.begin(), waits_.end(), false);
}

}  // namespace capstan::averaging
