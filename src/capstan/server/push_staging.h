#pragma once

#include <map>
#include <memory>
#include <vector>

#include "capstan/base/flat_layout.h"
#include "capstan/base/ids.h"
#include "capstan/base/status.h"
#include "capstan/checkpoint/manifest.h"
#include "capstan/server/worker_arena.h"
#include "capstan/transport/connection.h"
#include "capstan/wire/messages.h"

namespace capstan::server {

// The newest push of each worker, as one server holds it: whether a push is new, repeated or illegal, where
// its payload goes, and which groups of tensors have had it. With the marks of a checkpoint this makes a push
// count exactly once. Knows no connection. Owned by the server's loop; not thread-safe.
class PushStaging {
 public:
  // For one shard of a model; `marks` are a checkpoint's, for the groups of this job.
  PushStaging(Range shard, std::uint64_t layout_size, std::uint32_t groups,
              std::vector<checkpoint::HighWaterMark> marks = {});

  // Initial weights are there: pushes are legal from now on.
  void open() { is_open_ = true; }
  bool is_open() const { return is_open_; }

  // A worker joins: true. Or the same incarnation comes back: what it pushed before is then still held.
  bool join(WorkerId worker, Incarnation incarnation);
  void forget(WorkerId worker, Incarnation incarnation);

  // Where the payload of this worker's push goes.
  transport::Placement place(WorkerId from, const wire::Push& push, std::size_t bytes);
  // Takes a push that has arrived whole. True where the leader is to hear of it: it is new, or it was
  // repeated after a reconnection. Fails for an illegal one.
  Result<bool> stage(WorkerId from, const wire::Push& push, std::size_t payload_bytes);
  // Takes memory of a worker's own.
  Status share(WorkerId from, const wire::Share& share, transport::Segment segment);

  // The memory that holds this push; null where it is not here, or the group has had it.
  std::shared_ptr<WorkerArena> held(WorkerId worker, Sequence sequence, std::uint32_t group) const;
  // The push was applied to a group, accumulated or dropped by it.
  void settle(WorkerId worker, Sequence sequence, std::uint32_t group);

  std::shared_ptr<WorkerArena> arena(WorkerId worker) const;  // null for a worker that is not known

 private:
  struct Entry {
    Incarnation incarnation;
    std::shared_ptr<WorkerArena> arena;
    Sequence staged;                // newest push held here
    bool announced = false;         // the leader has heard of it since the worker joined
    std::vector<Sequence> settled;  // by group: newest push that was applied, accumulated or dropped

    bool in_use() const;  // the push held here waits for an order
  };

  const Entry* find(WorkerId worker) const;
  Status check(WorkerId from, const wire::Push& push) const;

  const Range shard_;
  const std::uint64_t layout_size_;
  const std::uint32_t groups_;
  const std::vector<checkpoint::HighWaterMark> marks_;
  std::map<WorkerId, Entry> entries_;
  bool is_open_ = false;
};

}  // namespace capstan::server
