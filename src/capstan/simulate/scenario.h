#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "capstan/simulate/cluster.h"

namespace capstan::simulate {

// A job on a cluster as the user gives it: rates and times as text with units. Empty or absent options take
// their default, or the value of the calibration run. A value.
struct ScenarioOptions {
  std::string model;  // a network or bytes:N; empty: the run's, or resnet50
  std::string compute, bandwidth, server_bandwidth, latency, memory_rate = "10GB/s", compute_memory;
  std::string failures = "0", repair = "60s";
  std::string slow_workers;         // "1:3x,5:2x"
  std::filesystem::path calibrate;  // a run's folder
  double cores = 0;                 // of one machine that all share; 0: one machine each
  double spread = 0;                // of the run's compute times
  std::optional<double> threads;
  std::optional<std::uint32_t> batch, state_tensors;
  std::uint64_t steps = 0;  // rounds per worker; 0: chosen automatically
  bool sweeps = false;      // the number of workers or servers is not fixed
};

// A complete scenario. A value.
struct Scenario {
  Cluster cluster;
  std::string model;
  std::string slow_workers;  // as the user gave them
  std::string calibrated;    // one line about what was taken from a run
};

// Functions that other layers provide.
struct ScenarioFacts {
  std::function<std::uint64_t(const std::string& model)> elements;  // of a model's flat array
  std::function<std::map<std::uint32_t, double>(const std::string& text)> slowness;
};

// `cluster` has the workers, servers, samples and seed. Throws UserError that names the flag.
Scenario make_scenario(Cluster cluster, const ScenarioOptions& options, const ScenarioFacts& facts);

}  // namespace capstan::simulate
