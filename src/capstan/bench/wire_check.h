#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "capstan/optimizer/optimizer.h"

namespace capstan::bench {

// One worker's observations.
struct WorkerObservation {
  std::vector<std::uint64_t> applied;  // for each push, from iteration 0: the version that it is part of
  std::uint64_t version = 0;           // of the last weights
  double weight = 0;                   // the first element
  std::uint64_t unlike = 0;            // elements that differ from it
};

// Checks the workers' observations by plain arithmetic; returns an error, or an empty text if all are right.
std::string check_weights(std::span<const WorkerObservation> workers, const optimizer::Options& optimizer);

}  // namespace capstan::bench
