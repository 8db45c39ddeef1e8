#pragma once

#include <memory>

#include "capstan/server/member_table.h"
#include "capstan/server/shard_executor.h"
#include "capstan/server/worker_arena.h"

namespace capstan::server {

// Delivers one version of the weights to one member, at its place in the executor's queue: read in place,
// copied to memory that the worker shares, or sent. A member whose connection has broken meanwhile receives
// nothing and asks again; nor does another incarnation that has taken its place. Owned by the server's loop;
// not thread-safe.
class WeightDelivery {
 public:
  // `in_place`: no update happens while a worker computes, so workers read the server's own memory.
  WeightDelivery(ShardExecutor& executor, MemberTable& members, bool in_place)
      : executor_(executor), members_(members), in_place_(in_place) {}

  void to_worker(const Peer& worker, const std::shared_ptr<WorkerArena>& arena, const wire::Weights& reply);
  void to_observer(const Peer& observer, const wire::Weights& reply);

 private:
  struct Recipient {
    wire::Member member;
    Incarnation incarnation;
  };

  Peer* find(const Recipient& to) { return members_.find(to.member, to.incarnation); }
  void read_in_place(const Recipient& to, const std::shared_ptr<WorkerArena>& arena,
                     const wire::Weights& reply);
  // Copies to `copy`, then sends from there.
  void send_copy(const Recipient& to, std::shared_ptr<float[]> copy, const wire::Weights& reply);

  ShardExecutor& executor_;
  MemberTable& members_;
  const bool in_place_;
};

}  // namespace capstan::server
