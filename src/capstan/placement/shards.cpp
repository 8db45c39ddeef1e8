#include "capstan/placement/shards.h"

#include <algorithm>

#include "capstan/base/check.h"
#include "capstan/base/row_tensors.h"

namespace capstan::placement {
namespace {

std::uint64_t parameters_within(const FlatLayout& layout, Range part) {
  std::uint64_t count = 0;
  for (std::size_t t = 0; t < layout.tensors().size(); ++t) {
    const auto range = layout.range(t);
    const auto begin = std::max(range.begin, part.begin), end = std::min(range.end, part.end);
    if (begin < end) count += end - begin;
  }
  return count;
}

}  // namespace

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

std::vector<std::uint64_t> push_bytes(const FlatLayout& layout, const ParameterGroups& groups,
                                      std::uint32_t servers) {
  std::vector<std::uint64_t> bytes(groups.phases());
  for (const auto& shard : split(layout.size(), servers)) {
    const ShardRows rows(layout, groups, shard);
    const auto pushed = push_ranges(layout, groups, shard);
    for (std::uint32_t phase = 0; phase < pushed.size(); ++phase) {
      const auto ranges = rows.empty() ? std::vector{pushed[phase]} : rows.dense(phase);
      for (const auto& range : ranges) {
        const Range part{shard.begin + range.begin, shard.begin + range.end};
        bytes[phase] += parameters_within(layout, part) * sizeof(float);
      }
    }
  }
  return bytes;
}

}  // namespace capstan::placement
