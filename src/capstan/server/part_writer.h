#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "capstan/checkpoint/background.h"
#include "capstan/server/shard_server.h"

namespace capstan::server {

// Writes one server's part of a checkpoint: copies the shard at its place in the queue of orders, then writes
// the copy on a separate thread, which gets values only. The leader's part also waits for the workers'
// buffers. One part at a time. Owned by the server's loop; not thread-safe.
class PartWriter {
 public:
  using Written = std::function<void(const wire::CheckpointWritten&)>;
  struct Buffers {
    FlatLayout layout;
    std::vector<float> values;
  };

  PartWriter(transport::EventLoop& loop, ShardServer& shard);

  // `written` runs with the pieces, or with an error. If `with_buffers`, writing starts after supply().
  void write(const wire::CheckpointOrder& order, bool with_buffers, Written written);
  void supply(Buffers buffers);

  // The writing thread, also for other long work: reading a checkpoint, publishing one.
  checkpoint::Background& background();

 private:
  // The part to write; incomplete while `snapshot` or `buffers` is empty.
  struct Pending {
    wire::CheckpointOrder order;
    Written written;
    std::shared_ptr<checkpoint::Snapshot> snapshot;
    std::optional<Buffers> buffers;
  };

  std::shared_ptr<checkpoint::Snapshot> allocate() const;  // null if out of memory
  void write_when_complete();

  transport::EventLoop& loop_;
  ShardServer& shard_;
  std::optional<Pending> pending_;
  std::unique_ptr<checkpoint::Background> background_;  // created on first use
};

}  // namespace capstan::server
