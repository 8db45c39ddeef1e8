#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>

#include "capstan/simulate/distribution.h"

namespace capstan::simulate {

// A machine that all workers and servers share.
struct SharedMachine {
  double cores = 1;
  double threads = 1;  // cores that a computing worker uses if they are free
  double traffic = 0;  // bytes/s of memory traffic that it then causes
};

// A hypothetical cluster and a job on it. All servers are alike; workers differ only in slowness.
struct Cluster {
  std::uint32_t workers = 1;
  std::uint32_t servers = 1;
  std::uint64_t elements = 0;  // of the model's flat array
  std::uint32_t batch = 64;
  std::uint64_t samples = 50'000;  // of the training set, for strategies that count in epochs
  std::uint64_t rounds = 1000;     // pushes per worker, on average

  Distribution compute = Distribution::constant(0.1);  // of one batch
  std::map<std::uint32_t, double> slowness;            // by rank: factor on the compute time

  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  double bandwidth = kUnlimited;           // bytes/s of a worker, each direction
  std::optional<double> server_bandwidth;  // of a server; default: that of a worker
  double latency = 0;                      // seconds, one way
  double memory_rate = 10e9;               // bytes/s that a server's updates read and write
  std::uint32_t state_tensors = 1;         // of the servers' optimizer: 1 for sgd with momentum, 2 for adam

  double failures = 0;     // per worker and second
  double repair = 60;      // seconds until a failed worker is back
  double detection = 1.5;  // seconds until the servers detect the failure

  // If set, all processes share one machine and its memory; links apply to everything else.
  std::optional<SharedMachine> machine;

  std::uint64_t seed = 0;
};

}  // namespace capstan::simulate
