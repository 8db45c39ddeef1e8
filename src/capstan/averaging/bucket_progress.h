#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "capstan/base/ids.h"
#include "capstan/status.h"

namespace capstan::averaging {

// The last average of one bucket, which trainers have sent the batch after it, and which wait for the answer.
// So a bucket counts exactly once, also if it is repeated on a new connection. A trainer may still need the
// last average while others have sent the next batch. Independent of connections and memory. Owned by the
// server's loop; not thread-safe.
class BucketProgress {
 public:
  BucketProgress(std::uint32_t bucket, std::uint32_t trainers)
      : bucket_(bucket), has_sent_(trainers), waits_(trainers) {}

  enum class Kind {
    kNew,
    kRepeated,  // of the batch that is being collected
    kAveraged,  // of the last average, which the trainer has not received
    kOld,       // the trainer has received the average
  };
  // What a bucket of this trainer and batch is. Fails for a batch that is not due.
  Result<Kind> classify(WorkerId worker, std::uint64_t batch) const;
  // Takes a new bucket; returns its number in the order of arrival, from 1. The last one completes the batch.
  std::uint32_t take(WorkerId worker, std::uint64_t batch);
  // The complete batch was averaged.
  void set_averaged();
  // The batch of the last average.
  std::uint64_t averaged() const { return *averaged_; }
  // The batch that some trainers have sent and that is not averaged yet; none if there is none.
  const std::optional<std::uint64_t>& pending() const { return pending_; }

  // The trainer waits for the average of the pending batch on its current connection.
  void expect_answer(WorkerId worker) { waits_[worker.value] = true; }
  // True once if the trainer waits.
  bool take_answer(WorkerId worker);
  // The trainer has a new connection, on which it repeats what was not answered.
  void reconnected(WorkerId worker) { waits_[worker.value] = false; }
  // The next batch may have any number.
  void reset();

 private:
  void clear_pending();

  const std::uint32_t bucket_;
  std::optional<std::uint64_t> averaged_, pending_;
  std::uint32_t sent_ = 0;
  std::vector<bool> has_sent_;  // by rank: the pending batch
  std::vector<bool> waits_;     // by rank
};

}  // namespace capstan::averaging
