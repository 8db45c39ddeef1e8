#include "capstan/server/checkpoint_coordinator.h"

#include <filesystem>
#include <utility>

namespace capstan::server {

CheckpointCoordinator::CheckpointCoordinator(const checkpoint::CheckpointOptions& options, Version start,
                                             transport::EventLoop& loop, BufferAggregator& buffers,
                                             PartWriter& writer, std::function<void()> done)
    : loop_(loop),
      buffers_(buffers),
      writer_(writer),
      checkpointer_(options, start, writer.background(), std::move(done), [&loop] { return loop.now(); }) {}

void CheckpointCoordinator::on_update(Version version) {
  if (!is_requested_ && checkpointer_.is_due(version)) request();
}

void CheckpointCoordinator::request() {
  is_requested_ = true;
  mean_.reset();
  buffers_.request(
      [this, number = ++requests_](std::vector<float> mean) {
        if (number != requests_) return;
        mean_ = std::move(mean);
        supply_buffers();
      },
      loop_.now() + BufferAggregator::kTimeout);
}

wire::CheckpointOrder CheckpointCoordinator::begin(checkpoint::Manifest manifest, std::uint32_t servers) {
  is_requested_ = false;
  const auto version = manifest.version;
  const auto folder = checkpointer_.begin(std::move(manifest), servers);
  const wire::CheckpointOrder order{version, std::filesystem::absolute(folder)};
  writer_.write(order, true, [this](const wire::CheckpointWritten& message) { written(0, message); });
  supply_buffers();
  return order;
}

void CheckpointCoordinator::supply_buffers() {
  if (is_requested_ || !mean_) return;
  // If no worker has sent buffers, the checkpoint has none.
  const auto layout = mean_->empty() ? FlatLayout() : buffers_.layout();
  checkpointer_.describe_buffers(layout);
  writer_.supply({layout, *std::exchange(mean_, {})});
}

void CheckpointCoordinator::written(std::uint32_t server, const wire::CheckpointWritten& written) {
  std::vector<checkpoint::Piece> pieces;
  for (const auto& p : written.pieces)
    pieces.push_back({p.file, p.key, p.array, p.tensor, {p.begin, p.end}, p.checksum});
  checkpointer_.written(server, written.version, written.error, std::move(pieces));
}

}  // namespace capstan::server
