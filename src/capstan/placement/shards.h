#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capstan/base/flat_layout.h"

namespace capstan::placement {

// Shard boundaries lie on multiples of this many elements (a memory page of floats), so that a worker can
// map every server's weights side by side into one flat array.
inline constexpr std::uint64_t kBoundary = 4096 / sizeof(float);

// Cuts a flat array of `size` elements into `servers` consecutive ranges of nearly equal bytes, through
// the middle of tensors where need be. The ranges cover the array in order; with more servers than pages
// the last ones are empty.
std::vector<Range> split(std::uint64_t size, std::uint32_t servers);

// For each of `groups` groups, its elements within a shard, counted from the shard's first: sorted ranges,
// those that touch made one. Together they are the whole shard; the gaps between tensors are group 0's.
std::vector<std::vector<Range>> group_ranges(const FlatLayout& layout,
                                             std::span<const std::uint32_t> group_of_tensor,
                                             std::uint32_t groups, Range shard);

}  // namespace capstan::placement
