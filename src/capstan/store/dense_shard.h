#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "capstan/base/ids.h"
#include "capstan/optimizer/optimizer.h"
#include "capstan/store/zeroed_array.h"

namespace capstan::store {

// The weights of one server's range, in memory that the caller gives (it may be shared), with the
// optimizer state beside them. Not thread-safe as a whole; apply() and chunks of it may run on several
// threads as long as no two touch the same chunk.
class DenseShard {
 public:
  // Elements per chunk: 256 KiB of weights stay in a core's L2 cache between update and copy.
  static constexpr std::size_t kChunk = std::size_t{64} * 1024;

  DenseShard(std::span<float> weights, const optimizer::Optimizer& optimizer);

  std::span<const float> weights() const { return weights_; }
  std::span<float> mutable_weights() { return weights_; }
  std::size_t chunks() const;

  // Updates one chunk from version `before` to before + 1, at `rate` times the learning rate, then copies its
  // new weights to each destination (arrays as long as the shard). Contributions point at the shard's first
  // element.
  void apply_chunk(std::size_t chunk, Version before, std::span<const optimizer::Contribution> contributions,
                   std::span<float* const> destinations, double rate = 1);
  // Copies one chunk of the weights as they are.
  void copy_chunk(std::size_t chunk, std::span<float* const> destinations) const;
  // Copies one chunk of the weights to the first destination, and of each state array to one more.
  void save_chunk(std::size_t chunk, std::span<float* const> destinations) const;

  // The optimizer's state arrays, in the optimizer's order: to save them, and to restore them into.
  std::vector<std::span<const float>> state() const;
  std::vector<std::span<float>> mutable_state();

 private:
  std::span<float> chunk_weights(std::size_t chunk) const;

  std::span<float> weights_;
  const optimizer::Optimizer& optimizer_;
  std::vector<ZeroedArray> state_;
};

}  // namespace capstan::store
