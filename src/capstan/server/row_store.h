#pragma once

#include <memory>
#include <span>
#include <vector>

#include "capstan/base/row_payload.h"
#include "capstan/server/shard_executor.h"
#include "capstan/server/worker_arena.h"
#include "capstan/store/changed_rows.h"
#include "capstan/wire/messages.h"

namespace capstan::server {

// The row tensors of one shard: updates of their rows, and which rows have changed since a worker's last
// answer. Owned by the server's loop; not thread-safe.
class RowStore {
 public:
  // Both must outlive this object.
  RowStore(ShardExecutor& executor, const ShardRows& rows);

  // Queues one update of a row tensor's group, of which this shard may have no part: of the rows that any of
  // these pushes has. `owners` keep the gradients and rows.
  struct Push {
    std::shared_ptr<WorkerArena> arena;
    float factor = 1;
  };
  void apply(std::uint32_t group, const optimizer::UpdateIndex& index, double rate, std::vector<Push> pushes,
             ShardExecutor::Done done);

  // Numbers an answer to a worker when it is ordered. Returns whether it may have only the rows that changed:
  // it answers the worker's staged push, and the worker had taken the answer before it.
  bool number_answer(WorkerArena& arena, wire::Weights& reply) const;
  // At an answer's place in the queue: what it consists of. From then on the worker has been given all
  // updates so far.
  RowLists take_changes(WorkerArena& arena);
  // The bytes of these rows with their numbers, and of all rows.
  std::uint64_t bytes(const RowLists& lists) const;
  std::uint64_t all_bytes() const;

  const ShardRows& rows() const { return rows_; }

 private:
  struct Update;

  ShardExecutor& executor_;
  const ShardRows& rows_;
  std::vector<store::ChangedRows> changed_;  // by part
};

}  // namespace capstan::server
