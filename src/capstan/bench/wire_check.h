#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "capstan/optimizer/optimizer.h"

namespace capstan::bench {

// What one worker saw.
struct WorkerObservation {
  std::vector<std::uint64_t> applied;  // for each of its pushes, from iteration 0: the version it went into
  std::uint64_t version = 0;           // of the last weights
  double weight = 0;                   // the first of them
  std::uint64_t unlike = 0;            // how many differ from it
};

// Judges by plain arithmetic what all workers saw: empty where it is right, else what is wrong.
std::string check_weights(std::span<const WorkerObservation> workers, const optimizer::Options& optimizer);

}  // namespace capstan::bench
