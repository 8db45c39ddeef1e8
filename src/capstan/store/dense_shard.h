#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "capstan/base/flat_layout.h"
#include "capstan/base/ids.h"
#include "capstan/base/update_rule.h"
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

  // `adaptive`: keeps the mean of squared gradients too, for UpdateRule::Kind::kCompensateAdaptive. `groups`:
  // the elements of each, as sorted ranges that together are the shard, where they are updated apart.
  DenseShard(std::span<float> weights, const optimizer::Optimizer& optimizer, bool adaptive = false,
             const std::vector<std::vector<Range>>& groups = {});

  std::span<const float> weights() const { return weights_; }
  std::span<float> mutable_weights() { return weights_; }
  std::size_t chunks() const { return whole_.size(); }
  // Where there are groups an update is of the chunks of one, which cross none of its ranges; everything else
  // is of those of the whole shard.
  std::size_t groups() const { return groups_.empty() ? 1 : groups_.size(); }
  std::size_t chunks(std::size_t group) const { return chunks_of(group).size(); }
  std::size_t elements(std::size_t group) const;

  // Updates one chunk by a rule, then copies its new weights to each destination (arrays as long as the
  // shard). Contributions point at the shard's first element; one that is to be compensated is alone, and
  // without a base has nothing to compensate.
  void apply_chunk(std::size_t chunk, const optimizer::UpdateIndex& index,
                   std::span<const optimizer::Contribution> contributions,
                   std::span<float* const> destinations, const UpdateRule& rule = {}, std::size_t group = 0);
  // Adds a contribution to one chunk of a sum that is kept beside the weights, or begins a new one with it.
  void accumulate_chunk(std::size_t chunk, const optimizer::Contribution& contribution, bool first);
  // The sum, as a contribution; make_sum() before the first accumulate.
  optimizer::Contribution sum() { return {sum_->data(), 1}; }
  void make_sum();
  // Copies one chunk of the weights as they are.
  void copy_chunk(std::size_t chunk, std::span<float* const> destinations) const;
  // Copies one chunk of the weights to the first destination, and of each state array to one more.
  void save_chunk(std::size_t chunk, std::span<float* const> destinations) const;

  // The optimizer's state arrays, in the optimizer's order, then the mean of squared gradients where it is
  // kept: to save them, and to restore them into.
  std::vector<std::span<const float>> state() const;
  std::vector<std::span<float>> mutable_state();

 private:
  const std::vector<Range>& chunks_of(std::size_t group) const;
  Range chunk(std::size_t index) const;
  std::span<float> weights_of(Range range) const { return weights_.subspan(range.begin, range.size()); }
  void move(Range range, double keep, std::span<const optimizer::Contribution> contributions);
  void compensate(Range range, const optimizer::UpdateIndex& index,
                  const optimizer::Contribution& contribution, const UpdateRule& rule);
  void copy(Range range, std::span<float* const> destinations) const;

  std::span<float> weights_;
  std::vector<Range> whole_;                // its chunks
  std::vector<std::vector<Range>> groups_;  // chunks of each group; empty where there is one
  const optimizer::Optimizer& optimizer_;
  std::vector<ZeroedArray> state_;
  std::size_t optimizer_state_;  // how many of them are the optimizer's
  std::optional<ZeroedArray> sum_;
};

}  // namespace capstan::store
