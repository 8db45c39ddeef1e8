#pragma once

#include <cstdint>
#include <vector>

#include "capstan/base/parameter_groups.h"
#include "capstan/layout.h"

namespace capstan::placement {

// Shard boundaries are multiples of this many elements (one memory page of floats), so that a worker can map
// the weights of all servers side by side into one flat array.
inline constexpr std::uint64_t kBoundary = 4096 / sizeof(float);

// Splits a flat array of `size` elements into `servers` consecutive ranges of nearly equal size; a tensor may
// be split. The ranges cover the array in order; with more servers than pages the last ones are empty.
std::vector<Range> split(std::uint64_t size, std::uint32_t servers);

// For each phase, the bytes of the parameters that a push carries to all servers (push_ranges(), without
// gaps), and without row tensors, whose rows differ from push to push.
std::vector<std::uint64_t> push_bytes(const FlatLayout& layout, const ParameterGroups& groups,
                                      std::uint32_t servers);

}  // namespace capstan::placement
