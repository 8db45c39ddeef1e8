#include "capstan/base/row_tensors.h"

#include <algorithm>

#include <fmt/format.h>

namespace capstan {
namespace {

Range intersection(Range a, Range b) {
  const auto begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

}  // namespace

Range RowPart::elements(std::uint32_t row) const {
  const auto begin = of_tensor.begin + row * columns;
  const auto here = intersection({begin, begin + columns}, shard);
  return {here.begin - shard.begin, here.end - shard.begin};
}

std::uint64_t RowPart::size() const {
  return intersection(of_tensor, shard).size();
}

std::uint64_t RowPart::size(std::span<const std::uint32_t> rows) const {
  if (rows.empty()) return 0;
  if (rows.size() == 1) return elements(rows[0]).size();
  return elements(rows.front()).size() + (rows.size() - 2) * columns + elements(rows.back()).size();
}

std::span<const std::uint32_t> RowPart::within(std::span<const std::uint32_t> rows) const {
  const auto begin = std::ranges::lower_bound(rows, first_row), end = std::ranges::lower_bound(rows, end_row);
  return {begin, end};
}

Status RowPart::check(std::span<const std::uint32_t> rows) const {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < first_row || rows[i] >= end_row)
      return Status::malformed(
          fmt::format("row {} of a tensor whose rows {} to {} are here", rows[i], first_row, end_row - 1));
    if (i > 0 && rows[i] <= rows[i - 1])
      return Status::malformed(fmt::format("row {} behind row {}", rows[i], rows[i - 1]));
  }
  return Status::ok();
}

ShardRows::ShardRows(const FlatLayout& layout, const ParameterGroups& groups, Range shard)
    : of_phase_(groups.phases()), dense_of_phase_(groups.phases()) {
  for (std::uint32_t t = 0; t < groups.of_tensors().size(); ++t) {
    const auto group = groups.of_tensors()[t];
    const auto range = layout.range(t);
    if (!groups[group].is_rows || intersection(range, shard).size() == 0) continue;
    const auto columns = static_cast<std::uint64_t>(layout.tensors()[t].dims[1]);
    const auto here = intersection(range, shard);
    of_phase_[groups[group].phase].push_back(static_cast<std::uint32_t>(parts_.size()));
    parts_.push_back({t, group, groups[group].phase, columns, range, shard,
                      static_cast<std::uint32_t>((here.begin - range.begin) / columns),
                      static_cast<std::uint32_t>((here.end - range.begin + columns - 1) / columns)});
  }
  if (parts_.empty()) return;
  // Of each tensor: its phase, or one more for row tensors and their gaps.
  std::vector<std::uint32_t> phase_of, is_rows;
  for (const auto group : groups.of_tensors()) {
    phase_of.push_back(groups[group].is_rows ? groups.phases() : groups[group].phase);
    is_rows.push_back(groups[group].is_rows ? 1 : 0);
  }
  dense_ = group_ranges(layout, is_rows, 2, shard)[0];
  dense_of_phase_ = group_ranges(layout, phase_of, groups.phases() + 1, shard);
}

const RowPart* ShardRows::of_group(std::uint32_t group) const {
  const auto found = std::ranges::find(parts_, group, &RowPart::group);
  return found == parts_.end() ? nullptr : &*found;
}

std::uint64_t total_size(std::span<const Range> ranges) {
  std::uint64_t size = 0;
  for (const auto& range : ranges) size += range.size();
  return size;
}

std::uint64_t dense_bytes(const FlatLayout& layout, const ParameterGroups& groups) {
  auto bytes = layout.bytes();
  for (std::size_t t = 0; t < groups.of_tensors().size(); ++t)
    if (groups[groups.of_tensors()[t]].is_rows) bytes -= layout.tensors()[t].elements() * sizeof(float);
  return bytes;
}

FlatLayout all_dense(const FlatLayout& layout) {
  auto tensors = layout.tensors();
  for (auto& tensor : tensors) tensor.sparse = false;
  return FlatLayout(std::move(tensors));
}

}  // namespace capstan
