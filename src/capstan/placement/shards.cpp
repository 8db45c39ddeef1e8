#include "capstan/placement/shards.h"

#include <algorithm>

#include "capstan/base/check.h"

namespace capstan::placement {

std::vector<Range> split(std::uint64_t size, std::uint32_t servers) {
  CAPSTAN_CHECK(servers > 0, "at least one server");
  const std::uint64_t pages = (size + kBoundary - 1) / kBoundary;
  const std::uint64_t each = pages / servers, extra = pages % servers;  // the first `extra` get one more
  const auto cut = [&](std::uint64_t s) {
    return std::min(size, (s * each + std::min(s, extra)) * kBoundary);
  };
  std::vector<Range> ranges;
  for (std::uint64_t s = 0; s < servers; ++s) ranges.push_back({cut(s), cut(s + 1)});
  return ranges;
}

std::vector<std::vector<Range>> group_ranges(const FlatLayout& layout,
                                             std::span<const std::uint32_t> group_of_tensor,
                                             std::uint32_t groups, Range shard) {
  CAPSTAN_CHECK(group_of_tensor.size() == layout.tensors().size(), "every tensor has a group");
  std::vector<std::vector<Range>> of(groups);
  const auto add = [&](std::uint32_t group, Range range) {
    range = {std::max(range.begin, shard.begin), std::min(range.end, shard.end)};
    if (range.begin >= range.end) return;
    range = {range.begin - shard.begin, range.end - shard.begin};
    auto& ranges = of.at(group);
    if (!ranges.empty() && ranges.back().end == range.begin) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
  };
  std::uint64_t at = 0;
  for (std::size_t t = 0; t < group_of_tensor.size(); ++t) {
    const auto range = layout.range(t);
    add(0, {at, range.begin});
    add(group_of_tensor[t], range);
    at = range.end;
  }
  add(0, {at, layout.size()});
  return of;
}

}  // namespace capstan::placement
