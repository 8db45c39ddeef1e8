#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace capstan {

// A part of a run in which the number of workers and the batch size stay the same. A run's position in its
// data is the list of its segments: each segment continues with the samples of each epoch that the earlier
// ones left.
struct DataSegment {
  std::uint64_t batch = 1;           // per worker
  std::vector<std::uint64_t> steps;  // completed by each worker, by rank

  std::uint64_t workers() const { return steps.size(); }
  friend bool operator==(const DataSegment&, const DataSegment&) = default;
};

// Bounds for values of a file or a peer, so that no arithmetic overflows: the steps of a worker, and the
// samples of a step of all workers. A worker that makes a step per microsecond reaches the first after nine
// years.
inline constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 48;
inline constexpr std::uint64_t kMostSamplesPerStep = std::uint64_t{1} << 48;

// False for a segment without workers or batch size, and for one beyond the bounds.
inline bool is_possible(const DataSegment& segment) {
  return segment.batch > 0 && !segment.steps.empty() &&
         segment.batch <= kMostSamplesPerStep / segment.workers() &&
         std::ranges::max(segment.steps) <= kMostSteps;
}

// The sum over the segments of the steps of each segment's fastest worker.
inline std::uint64_t steps_of(const std::vector<DataSegment>& segments) {
  std::uint64_t steps = 0;
  for (const auto& segment : segments) steps += segment.steps.empty() ? 0 : std::ranges::max(segment.steps);
  return steps;
}

}  // namespace capstan
