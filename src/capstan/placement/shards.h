#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capstan/base/flat_layout.h"

namespace capstan::placement {

// Shard boundaries are multiples of this many elements (one memory page of floats), so that a worker can map
// the weights of all servers side by side into one flat array.
inline constexpr std::uint64_t kBoundary = 4096 / sizeof(float);

// Splits a flat array of `size` elements into `servers` consecutive ranges of nearly equal size; a tensor may
// be split. The ranges cover the array in order; with more servers than pages the last ones are empty.
std::vector<Range> split(std::uint64_t size, std::uint32_t servers);

// For each of `groups` groups, its elements within a shard, relative to the shard's begin: sorted ranges,
// adjacent ones merged. Together they cover the shard; the gaps between tensors belong to group 0.
std::vector<std::vector<Range>> group_ranges(const FlatLayout& layout,
                                             std::span<const std::uint32_t> group_of_tensor,
                                             std::uint32_t groups, Range shard);

}  // namespace capstan::placement
