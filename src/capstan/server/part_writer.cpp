#include "capstan/server/part_writer.h"

#include <new>

namespace capstan::server {

PartWriter::PartWriter(transport::EventLoop& loop, ShardServer& shard) : loop_(loop), shard_(shard) {}

checkpoint::Background& PartWriter::background() {
  if (!background_) {
    background_ = std::make_unique<checkpoint::Background>(
        [&loop = loop_](std::function<void()> function) { loop.post(std::move(function)); });
  }
  return *background_;
}

std::shared_ptr<checkpoint::Snapshot> PartWriter::allocate() const {
  try {
    return std::make_shared<checkpoint::Snapshot>(shard_.state_names().size() + 1, shard_.range().size());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void PartWriter::write(const wire::CheckpointOrder& order, bool with_buffers, Written written) {
  const auto snapshot = allocate();
  if (!snapshot) return written({order.version, "not enough memory for a copy of the weights", {}});
  pending_ = {order, std::move(written), nullptr, std::nullopt};
  if (!with_buffers) pending_->buffers.emplace();
  shard_.copy_to(snapshot, [this, snapshot, version = order.version] {
    if (!pending_ || pending_->order.version != version) return;
    pending_->snapshot = snapshot;
    write_when_complete();
  });
}

void PartWriter::supply(Buffers buffers) {
  if (!pending_) return;
  pending_->buffers = std::move(buffers);
  write_when_complete();
}

void PartWriter::write_when_complete() {
  if (!pending_->snapshot || !pending_->buffers) return;
  const auto& terms = shard_.terms();
  const auto pieces = std::make_shared<std::vector<checkpoint::Piece>>();
  background().post(
      [order = pending_->order, snapshot = pending_->snapshot, buffers = std::move(*pending_->buffers),
       pieces, layout = shard_.layout(), names = shard_.state_names(), index = terms.index.value,
       servers = terms.servers, range = shard_.range()] {
        *pieces = checkpoint::write_part(order.folder, layout, names, index, servers, range, *snapshot,
                                         buffers.layout, buffers.values);
      },
      [written = std::move(pending_->written), version = pending_->order.version,
       pieces](const std::string& error) {
        wire::CheckpointWritten message{version, error, {}};
        for (const auto& p : *pieces)
          message.pieces.push_back(
              {p.file, p.key, p.array, p.tensor, p.elements.begin, p.elements.end, p.checksum});
        written(message);
      });
  pending_.reset();
}

}  // namespace capstan::server
