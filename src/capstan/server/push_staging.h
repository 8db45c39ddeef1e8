#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "capstan/base/ids.h"
#include "capstan/base/parameter_groups.h"
#include "capstan/base/row_payload.h"
#include "capstan/checkpoint/manifest.h"
#include "capstan/layout.h"
#include "capstan/server/worker_arena.h"
#include "capstan/status.h"
#include "capstan/transport/connection.h"
#include "capstan/wire/messages.h"

namespace capstan::server {

// The newest push of each worker on one server: whether a push is new, repeated or illegal, where its payload
// goes, and which parameter groups have processed it; groups of other phases have nothing to do with it. With
// the high-water marks of a checkpoint, a push counts exactly once. Independent of connections. Owned by the
// server's loop; not thread-safe.
class PushStaging {
 public:
  // For one shard of a model; `marks` come from a checkpoint, with the groups of this job.
  PushStaging(Range shard, const FlatLayout& layout, ParameterGroups groups,
              std::vector<checkpoint::HighWaterMark> marks = {});

  // The weights are initialized: pushes are legal from now on.
  void open() { is_open_ = true; }
  bool is_open() const { return is_open_; }

  // True if the worker is new; false if the same incarnation reconnects, whose staged push is kept.
  bool join(WorkerId worker, Incarnation incarnation);
  void forget(WorkerId worker, Incarnation incarnation);

  // Where the payload of this worker's push goes. Fails for an illegal push.
  Result<transport::Placement> place(WorkerId from, const wire::Push& push, std::size_t bytes);
  // Takes a complete push. True if the leader must be notified: the push is new, or repeated after a
  // reconnect. Fails for an illegal push.
  Result<bool> stage(WorkerId from, const wire::Push& push, std::size_t payload_bytes);
  // Takes a worker's shared memory.
  Status share(WorkerId from, const wire::Share& share, transport::Segment segment);

  // The memory that holds this push; null if it is not staged here, or the group has processed it.
  std::shared_ptr<WorkerArena> held(WorkerId worker, Sequence sequence, std::uint32_t group) const;
  // The group has applied, accumulated or dropped the push.
  void settle(WorkerId worker, Sequence sequence, std::uint32_t group);

  std::shared_ptr<WorkerArena> arena(WorkerId worker) const;  // null for an unknown worker

 private:
  struct Entry {
    Incarnation incarnation;
    std::shared_ptr<WorkerArena> arena;
    Sequence staged;                // newest push held here
    StepCount steps;                // of that push
    bool announced = false;         // the leader was notified since the worker last joined
    std::vector<Sequence> settled;  // by group: newest push that was processed, or is of another phase
    std::optional<std::vector<float>> arriving = {};  // the payload of a push with rows

    bool in_use() const;  // the staged push waits for an order
  };

  const Entry* find(WorkerId worker) const;
  Status check(WorkerId from, const wire::Push& push, std::size_t payload_bytes) const;
  Status check_new(const Entry& entry, const wire::Push& push) const;
  Status check_payload(const Entry& entry, const wire::Push& push, std::size_t bytes) const;
  Status check_rows(const Entry& entry, const wire::Push& push, std::size_t bytes) const;
  RowPayload row_payload(const Entry& entry, std::uint32_t phase) const;
  Status take_rows(Entry& entry, const wire::Push& push) const;

  const Range shard_;
  const std::uint64_t layout_size_;
  const ParameterGroups groups_;
  const ShardRows rows_;
  const std::vector<Range> parts_;  // by phase: the part of the shard that a push without rows carries
  const std::vector<checkpoint::HighWaterMark> marks_;
  std::map<WorkerId, Entry> entries_;
  bool is_open_ = false;
};

}  // namespace capstan::server
