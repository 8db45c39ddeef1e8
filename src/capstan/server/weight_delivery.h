#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "capstan/server/member_table.h"
#include "capstan/server/row_store.h"
#include "capstan/server/shard_executor.h"
#include "capstan/server/worker_arena.h"

namespace capstan::server {

// Delivers one version of the weights to one member, at its place in the executor's queue: read in place,
// copied to memory that the worker shares, or sent. A member whose connection has broken meanwhile receives
// nothing and asks again; nor does another incarnation that has taken its place. An observer that does not
// read its answers costs the memory of two: the one that is being sent, and the newest. Owned by the server's
// loop; not thread-safe.
class WeightDelivery {
 public:
  struct Options {
    bool in_place = false;  // no update happens while a worker computes: workers read the server's own memory
    bool keeps_copy = false;  // the whole weights that a worker was given last: WorkerArena::delivered()
    // If set, called when a worker has been answered, with the bytes of the answer.
    std::function<void(WorkerId, std::uint64_t bytes)> on_answer = {};
  };
  // `rows`: of a shard with row tensors. A worker that has taken this server's last answer is sent only those
  // that have changed since.
  WeightDelivery(ShardExecutor& executor, MemberTable& members, Options options, RowStore* rows = nullptr)
      : executor_(executor), members_(members), options_(std::move(options)), rows_(rows) {}

  void to_worker(const Peer& worker, const std::shared_ptr<WorkerArena>& arena, wire::Weights reply);
  void to_observer(const Peer& observer, const wire::Weights& reply);
  // An answer to this observer has been ordered and is not sent yet.
  bool is_answering(const wire::Member& observer) const;

 private:
  struct Recipient {
    wire::Member member;
    Incarnation incarnation;
  };

  // The answers to one observer.
  struct Answers {
    Recipient to;
    std::uint64_t ordered = 0, copied = 0;  // how many
    std::shared_ptr<float[]> next;          // where those that are not being sent are copied
    std::optional<wire::Weights> ready;     // the newest: it is copied, and waits for the one being sent
    bool sending = false;

    bool is_idle() const { return copied == ordered && !ready && !sending; }
  };

  Peer* find(const Recipient& to) { return members_.find(to.member, to.incarnation); }
  void read_in_place(const Recipient& to, const std::shared_ptr<WorkerArena>& arena,
                     const wire::Weights& reply, bool changes);
  void send_ready(const std::shared_ptr<Answers>& answers);
  // Copies to `copy`, then sends from there.
  void send_copy(const Recipient& to, std::shared_ptr<float[]> copy, const wire::Weights& reply,
                 const std::shared_ptr<WorkerArena>& arena);
  void send_changes(const Recipient& to, const std::shared_ptr<WorkerArena>& arena,
                    const wire::Weights& reply);
  void report_answer(const Recipient& to, const wire::Weights& sent) const;
  // The reply, with its rows once the weights are copied.
  wire::Weights with_rows(wire::Weights reply, WorkerArena& arena, bool changes);

  ShardExecutor& executor_;
  MemberTable& members_;
  const Options options_;
  RowStore* const rows_;
  std::map<wire::Member, std::shared_ptr<Answers>> answers_;  // to observers
};

}  // namespace capstan::server
