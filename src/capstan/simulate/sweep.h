#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capstan/simulate/bottleneck.h"

namespace capstan::simulate {

// What one worker of the cluster makes alone, without failures, in samples a second.
double speed_alone(const Cluster& cluster, const std::string& strategy);
// Samples a second over those of as many workers that each make what one makes alone.
double efficiency(const Prediction& prediction, double alone);

// The values that a quantity takes.
struct SweepRange {
  enum class Axis { kWorkers, kServers };
  Axis axis = Axis::kWorkers;
  std::vector<std::uint32_t> values;  // the first, its doubles, the last

  // "workers=1..4096", "servers=2..64". Throws UserError.
  static SweepRange parse(const std::string& text);
  const char* name() const { return axis == Axis::kWorkers ? "workers" : "servers"; }
};

struct Point {
  std::uint32_t at = 0;
  Prediction prediction;
  double efficiency = 0;
  Bottleneck bottleneck;
};

struct Curve {
  std::string strategy;
  std::vector<Point> points;
  std::string missing;  // why some points are not there; empty where all are
  std::string verdict;  // one sentence
};

// Called before each point with how many are done, and of how many.
using SweepWatch = std::function<void(std::size_t done, std::size_t all, const std::string& what)>;

// Predicts the same job for each value. `pushes` says how much of each point is simulated: so many pushes,
// but at least 20 rounds of each worker, and no more rounds than the cluster says.
std::vector<Curve> sweep(const Cluster& cluster, const std::vector<std::string>& strategies,
                         const SweepRange& range, std::uint64_t pushes, const SweepWatch& watch);

}  // namespace capstan::simulate
