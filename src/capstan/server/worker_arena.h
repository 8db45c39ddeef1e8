#pragma once

#include <memory>

#include "capstan/base/flat_layout.h"
#include "capstan/base/status.h"
#include "capstan/transport/segment.h"

namespace capstan::server {

// One worker's memory as a server sees it: where its gradient lies and where its weights go. On one host
// both are segments of the worker's, mapped here; otherwise buffers of the server's own, made when first
// needed. Only this server's range is ever touched. Owned by the server's loop; operations on the shard
// keep it alive.
class WorkerArena {
 public:
  WorkerArena(Range shard, std::uint64_t layout_size) : shard_(shard), layout_size_(layout_size) {}

  // Takes a segment of the worker's whole flat array; refuses one of another size, or one not writable
  // where it must be. The first one stays: a worker that comes back sends the same memory again, and the
  // mapping may be in use by another thread.
  Status take_gradients(transport::Segment segment);
  Status take_weights(transport::Segment segment);

  bool shares_gradients() const { return static_cast<bool>(shared_gradients_); }
  bool shares_weights() const { return static_cast<bool>(shared_weights_); }

  std::span<float> gradients();       // of this server's range
  std::span<float> shared_weights();  // of this server's range; only where shares_weights()
  // A buffer for this server's range of the weights, on its way to the worker: nobody else fills it until
  // all who hold it have let go.
  std::shared_ptr<float[]> outgoing_weights();
  // This server's range of the weights that the worker was given last; null where it reads them in place.
  std::shared_ptr<const float> delivered();

 private:
  const Range shard_;
  const std::uint64_t layout_size_;
  transport::Segment shared_gradients_, shared_weights_;
  std::unique_ptr<float[]> own_gradients_;
  std::shared_ptr<float[]> own_weights_;
};

}  // namespace capstan::server
