#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "capstan/simulate/cluster.h"

namespace capstan::simulate {

// What a real run says about the time that its parts take. docs/simulation.md has the formulas.
struct Calibration {
  std::string network, strategy;
  std::uint32_t workers = 1;
  std::uint32_t batch = 1;
  double threads = 1;          // of a worker
  double compute = 0;          // seconds of a worker for one batch, waiting for its samples included
  double exchange = 0;         // seconds from a push to the weights; 0 where workers waited for each other
  std::uint64_t elements = 0;  // of the model's flat array; 0 where the run does not say
  std::uint32_t state_tensors = 1;
  double samples_per_second = 0;

  // Reads a run's folder: the result in metrics.jsonl, and config.toml. Throws UserError.
  static Calibration read(const std::filesystem::path& run);

  // One worker's exchange on a machine of its own is an update and a way forth and back. Where an update at
  // the cluster's memory rate would take longer than the exchange did, the rate is higher than that.
  void set_exchange(Cluster& cluster) const;
};

}  // namespace capstan::simulate
