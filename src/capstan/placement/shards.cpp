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

}  // namespace capstan::placement
