#pragma once

#include <functional>
#include <optional>
#include <string>

#include "capstan/checkpoint/checkpointer.h"
#include "capstan/server/buffer_aggregator.h"
#include "capstan/server/part_writer.h"

namespace capstan::server {

// The leader's side of checkpoints: when a checkpoint is due, which buffers belong to it, and which parts are
// missing (checkpoint/checkpointer.h has the states). Owned by the leader's loop; not thread-safe.
class CheckpointCoordinator {
 public:
  // `done` runs when a checkpoint is complete or has failed.
  CheckpointCoordinator(const checkpoint::CheckpointOptions& options, Version start,
                        transport::EventLoop& loop, BufferAggregator& buffers, PartWriter& writer,
                        std::function<void()> done);

  // The update to this version is ordered. If a checkpoint is due, the buffers are requested at once: the
  // weights of this version, which are delivered next, carry the request.
  void on_update(Version version);
  // Requests a checkpoint of the current version.
  void request();
  bool is_requested() const { return is_requested_; }

  // Starts this server's part and returns the order for the others. It follows the weights of that version,
  // so no worker waits for the copy.
  wire::CheckpointOrder begin(checkpoint::Manifest manifest, std::uint32_t servers);
  void written(std::uint32_t server, const wire::CheckpointWritten& written);
  void lost(std::uint32_t server) { checkpointer_.lost(server); }

  const checkpoint::Checkpointer& checkpointer() const { return checkpointer_; }

 private:
  void supply_buffers();

  transport::EventLoop& loop_;
  BufferAggregator& buffers_;
  PartWriter& writer_;
  checkpoint::Checkpointer checkpointer_;
  bool is_requested_ = false;  // the order has not been given yet
  std::uint64_t requests_ = 0;
  std::optional<std::vector<float>> mean_;  // of the buffers, for the newest request
};

}  // namespace capstan::server
