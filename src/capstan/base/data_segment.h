#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace capstan {

// One stretch of a run's way through its data, in which the number of workers and their batch size stay the
// same. Where a run stands is the list of its segments: each goes on with what the ones before left of each
// epoch.
struct DataSegment {
  std::uint64_t batch = 1;           // per worker
  std::vector<std::uint64_t> steps;  // how many each worker has done, by rank

  std::uint64_t workers() const { return steps.size(); }
  friend bool operator==(const DataSegment&, const DataSegment&) = default;
};

// The steps of these segments of the worker that has done most in each.
inline std::uint64_t steps_of(const std::vector<DataSegment>& segments) {
  std::uint64_t steps = 0;
  for (const auto& segment : segments) steps += segment.steps.empty() ? 0 : std::ranges::max(segment.steps);
  return steps;
}

}  // namespace capstan
