#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capstan/simulate/bottleneck.h"

namespace capstan::simulate {

// Samples/s of a single worker of the cluster, without failures.
double speed_alone(const Cluster& cluster, const std::string& strategy);
// Samples/s relative to linear scaling from a single worker.
double efficiency(const Prediction& prediction, double alone);

// The values of a sweep.
struct SweepRange {
  enum class Axis { kWorkers, kServers };
  Axis axis = Axis::kWorkers;
  std::vector<std::uint32_t> values;  // the first, doubled up to the last

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
  std::string missing;  // why some points are missing; empty if none are
  std::string verdict;  // one sentence
};

// Called before each point with the number of completed points and of all points.
using SweepWatch = std::function<void(std::size_t done, std::size_t all, const std::string& what)>;

// Predicts the same job for each value. Each point simulates `pushes` pushes, but at least 20 rounds of each
// worker, and at most the cluster's rounds.
std::vector<Curve> sweep(const Cluster& cluster, const std::vector<std::string>& strategies,
                         const SweepRange& range, std::uint64_t pushes, const SweepWatch& watch);

}  // namespace capstan::simulate
