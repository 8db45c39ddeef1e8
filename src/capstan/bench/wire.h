#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "capstan/config/job_config.h"

namespace capstan::bench {

struct WireOptions {
  std::string model = "lenet";
  config::JobConfig job;
  std::uint64_t iterations = 0;  // 0: enough for about two seconds
  std::uint64_t warmup = 3;
};

// Measures push and pull of a model's tensors between real processes, without computation. The result has
// "ok": false if the workers' weights differ from the scalar reference. Throws UserError for wrong options;
// Failure if a process is lost or once `cancelled` returns true.
nlohmann::json run_wire(const WireOptions& options, const std::function<void(const std::string&)>& progress,
                        const std::function<bool()>& cancelled);

// One worker of the benchmark, in its own process: returns its measurements.
struct WireWorkerOptions {
  std::string model;
  std::vector<std::string> servers;
  std::string transport;
  std::uint32_t rank = 0;
  std::uint64_t iterations = 1;
  std::uint64_t warmup = 0;
};
nlohmann::json run_wire_worker(const WireWorkerOptions& options);

}  // namespace capstan::bench
