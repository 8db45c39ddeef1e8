#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "capstan/simulate/cluster.h"

namespace capstan::simulate {

// The times of a real run's parts. docs/simulation.md has the formulas.
struct Calibration {
  std::string network, strategy;
  std::uint32_t workers = 1;
  std::uint32_t batch = 1;
  double threads = 1;          // per worker
  double compute = 0;          // seconds of a worker per batch, including the wait for samples
  double exchange = 0;         // seconds from a push to its weights; 0 if workers waited for each other
  std::uint64_t elements = 0;  // of the model's flat array; 0: not recorded
  std::uint32_t state_tensors = 1;
  double samples_per_second = 0;

  // Reads a run's folder: the result in metrics.jsonl, and config.toml. Throws UserError.
  static Calibration read(const std::filesystem::path& run);

  // Sets the latency: one worker's exchange on its own machine is an update and a round trip. If an update at
  // the cluster's memory rate took longer than the exchange, the rate is raised.
  void set_exchange(Cluster& cluster) const;
};

}  // namespace capstan::simulate
