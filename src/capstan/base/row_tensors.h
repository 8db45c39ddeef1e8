#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capstan/base/parameter_groups.h"
#include "capstan/layout.h"
#include "capstan/status.h"

namespace capstan {

// The rows of a push, by tensor of the layout: sorted, each once; empty for tensors that are no row tensors.
using RowLists = std::vector<std::vector<std::uint32_t>>;

// The part of a row tensor that a shard has. The first and the last row may be cut. A value.
struct RowPart {
  std::uint32_t tensor = 0;  // of the layout
  std::uint32_t group = 0;
  std::uint32_t phase = 0;
  std::uint64_t columns = 1;
  Range of_tensor;                           // its elements in the layout
  Range shard;                               // in the layout
  std::uint32_t first_row = 0, end_row = 0;  // those that have elements in the shard

  std::uint32_t rows() const { return end_row - first_row; }
  // A row's elements within the shard, relative to the shard's begin.
  Range elements(std::uint32_t row) const;
  // All elements within the shard.
  std::uint64_t size() const;
  // The elements of these rows, which are sorted.
  std::uint64_t size(std::span<const std::uint32_t> rows) const;
  // Those of a whole tensor's rows that have elements here.
  std::span<const std::uint32_t> within(std::span<const std::uint32_t> rows) const;
  // Whether rows from a peer are sorted, each once, and have elements here.
  Status check(std::span<const std::uint32_t> rows) const;
};

// The row tensors of one shard, and what else it has. A message with rows carries dense() packed, then the
// rows of each part. Immutable.
class ShardRows {
 public:
  ShardRows() = default;  // without row tensors
  ShardRows(const FlatLayout& layout, const ParameterGroups& groups, Range shard);

  bool empty() const { return parts_.empty(); }
  const std::vector<RowPart>& parts() const { return parts_; }
  // Of one phase, as indices of parts().
  const std::vector<std::uint32_t>& of_phase(std::uint32_t phase) const { return of_phase_[phase]; }
  // The part of a group, if it is a row tensor's; null if the shard has none of it.
  const RowPart* of_group(std::uint32_t group) const;
  // All other elements, and those of one phase: sorted ranges, relative to the shard's begin.
  const std::vector<Range>& dense() const { return dense_; }
  const std::vector<Range>& dense(std::uint32_t phase) const { return dense_of_phase_[phase]; }

 private:
  std::vector<RowPart> parts_;  // in the order of the tensors
  std::vector<std::vector<std::uint32_t>> of_phase_;
  std::vector<Range> dense_;
  std::vector<std::vector<Range>> dense_of_phase_;
};

// The elements of all ranges.
std::uint64_t total_size(std::span<const Range> ranges);

// The bytes of all parameters that are in no row tensor's group.
std::uint64_t dense_bytes(const FlatLayout& layout, const ParameterGroups& groups);

// The same layout without row tensors.
FlatLayout all_dense(const FlatLayout& layout);

}  // namespace capstan
