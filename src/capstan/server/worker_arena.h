#pragma once

#include <memory>

#include "capstan/base/ids.h"
#include "capstan/base/row_tensors.h"
#include "capstan/layout.h"
#include "capstan/status.h"
#include "capstan/transport/segment.h"

namespace capstan::server {

// What a server knows of a worker's rows, by part of ShardRows. A value.
struct WorkerRows {
  RowLists pushed;                   // of the staged push
  Sequence push;                     // its number
  std::uint64_t held = 0;            // the answer that the worker had taken when it pushed
  std::uint64_t answers = 0;         // ordered so far
  std::vector<std::uint64_t> given;  // updates of each part that the newest answer includes
};

// One worker's memory as a server sees it: where its gradient is read and its weights are written. On one
// host both are the worker's segments, mapped here; otherwise the server's own buffers, allocated on first
// use. Only this server's range is accessed. Owned by the server's loop; operations on the shard keep it
// alive.
class WorkerArena {
 public:
  WorkerArena(Range shard, std::uint64_t layout_size) : shard_(shard), layout_size_(layout_size) {}

  // Take a segment with the worker's whole flat array; fail if it has another size, or if a segment for
  // weights is not writable. The first one stays: a worker that reconnects sends the same memory again, and
  // another thread may be using the mapping.
  Status take_gradients(transport::Segment segment);
  Status take_weights(transport::Segment segment);

  WorkerRows& rows() { return rows_; }

  bool shares_gradients() const { return static_cast<bool>(shared_gradients_); }
  bool shares_weights() const { return static_cast<bool>(shared_weights_); }

  std::span<float> gradients();       // of this server's range
  std::span<float> shared_weights();  // of this server's range; only if shares_weights()
  // A buffer to send this server's range of the weights from; reused only after all holders have released it.
  std::shared_ptr<float[]> outgoing_weights();
  // Memory for initial weights that begin to arrive: none while earlier ones of this worker are arriving.
  // take_initial() returns them, or null if there are none; the connection must not write there any more.
  std::span<float> begin_initial();
  std::unique_ptr<float[]> take_initial() { return std::move(initial_); }
  // This server's range of the weights delivered last; null if the worker reads them in place.
  std::shared_ptr<const float> delivered();

 private:
  const Range shard_;
  const std::uint64_t layout_size_;
  transport::Segment shared_gradients_, shared_weights_;
  std::unique_ptr<float[]> own_gradients_;
  std::unique_ptr<float[]> initial_;
  std::shared_ptr<float[]> own_weights_;
  WorkerRows rows_;
};

}  // namespace capstan::server
