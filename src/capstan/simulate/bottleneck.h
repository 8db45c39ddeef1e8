#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "capstan/simulate/cluster.h"
#include "capstan/simulate/prediction.h"

namespace capstan::simulate {

enum class Limit { kComputing, kServerLinks, kOwnLinks, kUpdates, kOthers, kCores, kFailures };

// What limits a cluster's throughput, and by how much.
struct Bottleneck {
  Limit limit = Limit::kComputing;
  double gain = 1;       // factor on samples/s without the limit
  std::string sentence;  // "the servers' incoming links (98 % busy); without limit 5.1 times the samples/s"
};

// Finds the bottleneck by simulation: removes one limit at a time; the limit whose removal helps most is the
// bottleneck. If none helps by a tenth, it is computing. `pushes` bounds each simulation.
Bottleneck find_bottleneck(const Cluster& cluster, const std::string& strategy, const Prediction& prediction,
                           std::uint64_t pushes);

// The gain of doubling the limited resource, simulated, as text; no value if there is nothing to double.
std::optional<std::string> relief(const Cluster& cluster, const std::string& strategy, Limit limit,
                                  std::uint64_t pushes);

// "servers", "links" … for tables and plots.
const char* name(Limit limit);

}  // namespace capstan::simulate
