#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "capstan/simulate/cluster.h"
#include "capstan/simulate/prediction.h"

namespace capstan::simulate {

enum class Limit { kComputing, kServerLinks, kOwnLinks, kUpdates, kOthers, kCores, kFailures };

// What keeps a cluster from being faster, and by how much.
struct Bottleneck {
  Limit limit = Limit::kComputing;
  double gain = 1;       // how many times the samples a second there would be without it
  std::string sentence;  // "the servers' incoming links (98 % busy); without limit 5.1 times the samples/s"
};

// Finds it by trying: one thing after the other is made free, and what helps most is the bottleneck; where
// nothing helps by a tenth, it is the computing. `pushes` says how much each try may simulate.
Bottleneck find_bottleneck(const Cluster& cluster, const std::string& strategy, const Prediction& prediction,
                           std::uint64_t pushes);

// The same cluster with twice of what it lacks, as people would call it, and what that brings; none where
// there is nothing to double. Simulated too.
std::optional<std::string> relief(const Cluster& cluster, const std::string& strategy, Limit limit,
                                  std::uint64_t pushes);

// "servers", "links" … for tables and plots.
const char* name(Limit limit);

}  // namespace capstan::simulate
