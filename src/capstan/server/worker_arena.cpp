#include "capstan/server/worker_arena.h"

#include <fmt/format.h>

namespace capstan::server {
namespace {

Status check_size(const transport::Segment& segment, std::uint64_t elements) {
  if (segment.size() == elements * sizeof(float)) return Status::ok();
  return Status::malformed(
      fmt::format("a segment of {} bytes for a model of {} bytes", segment.size(), elements * sizeof(float)));
}

}  // namespace

Status WorkerArena::take_gradients(transport::Segment segment) {
  if (auto bad = check_size(segment, layout_size_); !bad.is_ok()) return bad;
  if (!shared_gradients_) shared_gradients_ = std::move(segment);
  return Status::ok();
}

Status WorkerArena::take_weights(transport::Segment segment) {
  if (auto bad = check_size(segment, layout_size_); !bad.is_ok()) return bad;
  if (!segment.is_writable()) return Status::malformed("a segment for weights that is not writable");
  if (!shared_weights_) shared_weights_ = std::move(segment);
  return Status::ok();
}

// Own buffers are not initialized: a push or a delivery fills them before they are read.
std::span<float> WorkerArena::gradients() {
  if (shared_gradients_) return shared_gradients_.floats().subspan(shard_.begin, shard_.size());
  if (!own_gradients_) own_gradients_ = std::make_unique_for_overwrite<float[]>(shard_.size());
  return {own_gradients_.get(), shard_.size()};
}

std::span<float> WorkerArena::shared_weights() {
  return shared_weights_.floats().subspan(shard_.begin, shard_.size());
}

std::shared_ptr<float[]> WorkerArena::outgoing_weights() {
  // A second answer must not overwrite the first while that is still being sent.
  if (!own_weights_ || own_weights_.use_count() > 1)
    own_weights_ = std::make_shared_for_overwrite<float[]>(shard_.size());
  return own_weights_;
}

std::span<float> WorkerArena::begin_initial() {
  if (initial_) return {};
  initial_ = std::make_unique_for_overwrite<float[]>(shard_.size());
  return {initial_.get(), shard_.size()};
}

std::shared_ptr<const float> WorkerArena::delivered() {
  if (shared_weights_) return {std::shared_ptr<void>(), shared_weights().data()};
  return {own_weights_, own_weights_.get()};
}

}  // namespace capstan::server
