#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace capstan {

// One stretch of a run's way through its data, in which the number of workers and their batch size stay the
// same. Where a run stands is the list of its legs: each goes on with what the ones before left of each
// epoch.
struct DataLeg {
  std::uint64_t batch = 1;           // per worker
  std::vector<std::uint64_t> steps;  // how many each worker has done, by rank

  std::uint64_t workers() const { return steps.size(); }
  friend bool operator==(const DataLeg&, const DataLeg&) = default;
};

// The steps of these legs of the worker that has done most in each.
inline std::uint64_t steps_of(const std::vector<DataLeg>& legs) {
  std::uint64_t steps = 0;
  for (const auto& leg : legs) steps += leg.steps.empty() ? 0 : std::ranges::max(leg.steps);
  return steps;
}

}  // namespace capstan
