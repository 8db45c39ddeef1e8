#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "capstan/base/ids.h"
#include "capstan/base/parameter_groups.h"
#include "capstan/base/update_rule.h"
#include "capstan/layout.h"
#include "capstan/optimizer/spec.h"
#include "capstan/store/zeroed_array.h"

namespace capstan::store {

// The elements of a shard that are updated together.
struct ShardGroup {
  std::vector<Range> ranges;  // sorted
  std::size_t optimizer = 0;  // entry of the OptimizerSet
};

// The parameter groups of a model within a shard.
std::vector<ShardGroup> shard_groups(const FlatLayout& layout, const ParameterGroups& groups, Range shard);

// The weights of one server's range, in memory of the caller (it may be shared), and their optimizer state.
// Several threads may work on different chunks or rows at once; everything else is not thread-safe.
class DenseShard {
 public:
  // Elements per chunk: 256 KiB of weights stay in a core's L2 cache between update and copy.
  static constexpr std::size_t kChunk = std::size_t{64} * 1024;

  // `adaptive`: also keeps the mean of squared gradients, for UpdateRule::Kind::kCompensateAdaptive.
  // `groups`: each is updated separately, and together they cover the shard; none: one group.
  DenseShard(std::span<float> weights, const optimizer::OptimizerSet& optimizers, bool adaptive = false,
             const std::vector<ShardGroup>& groups = {});

  std::span<const float> weights() const { return weights_; }
  std::span<float> mutable_weights() { return weights_; }
  std::size_t chunks() const { return whole_.size(); }
  // An update works on the chunks of one group, each within one of its ranges. All other operations work on
  // the chunks of the whole shard.
  std::size_t groups() const { return groups_.empty() ? 1 : groups_.size(); }
  std::size_t chunks(std::size_t group) const { return chunks_of(group).size(); }
  std::size_t elements(std::size_t group) const;

  // Updates one chunk by a rule, then copies its new weights to each destination (arrays as long as the
  // shard). Contributions point to the shard's first element. A compensating rule takes a single
  // contribution; one without a base is not corrected.
  void apply_chunk(std::size_t chunk, const optimizer::UpdateIndex& index,
                   std::span<const optimizer::Contribution> contributions,
                   std::span<float* const> destinations, const UpdateRule& rule = {}, std::size_t group = 0);
  // Updates some rows of a group that is a row tensor, with the contributions that have them: rows that are
  // sorted, each once, each in a contribution.
  void apply_rows(const RowPart& part, std::span<const std::uint32_t> rows,
                  const optimizer::UpdateIndex& index,
                  std::span<const optimizer::RowContribution> contributions, double rate);
  // Adds a contribution to one chunk of the accumulated sum; with `first`, replaces the sum by it.
  void accumulate_chunk(std::size_t chunk, const optimizer::Contribution& contribution, bool first);
  // The accumulated sum as a contribution; make_sum() allocates it before the first accumulate_chunk().
  optimizer::Contribution sum() { return {sum_->data(), 1}; }
  void make_sum();
  // Copies one chunk of the weights.
  void copy_chunk(std::size_t chunk, std::span<float* const> destinations) const;
  // Copies one chunk of the weights to the first destination, and of each state array to one of the others.
  void save_chunk(std::size_t chunk, std::span<float* const> destinations) const;

  // The optimizers' state arrays in the order of OptimizerSet::state_names(), then the mean of squared
  // gradients where it is kept.
  std::vector<std::span<const float>> state() const;
  std::vector<std::span<float>> mutable_state();

 private:
  const std::vector<Range>& chunks_of(std::size_t group) const;
  void update(std::size_t group, const optimizer::UpdateIndex& index, Range range,
              std::span<const optimizer::Contribution> contributions, double rate);
  Range chunk(std::size_t index) const;
  std::span<float> weights_of(Range range) const { return weights_.subspan(range.begin, range.size()); }
  void move(Range range, double keep, std::span<const optimizer::Contribution> contributions);
  void compensate(std::size_t group, Range range, const optimizer::UpdateIndex& index,
                  const optimizer::Contribution& contribution, const UpdateRule& rule);
  void copy(Range range, std::span<float* const> destinations) const;

  std::span<float> weights_;
  std::vector<Range> whole_;                // chunks of the shard
  std::vector<std::vector<Range>> groups_;  // chunks of each group; empty for a single group
  std::vector<std::size_t> entries_ = {0};  // the optimizer of each group
  const optimizer::OptimizerSet& optimizers_;
  std::vector<ZeroedArray> state_;
  std::optional<ZeroedArray> sum_;
};

}  // namespace capstan::store
