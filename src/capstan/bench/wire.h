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

// Push and pull of a model's tensors by real processes, without computation. Throws UserError for wrong
// options; a result with "ok": false where the weights that workers saw are not those that plain
// arithmetic gives; Failure where a process is lost, or once `cancelled` says so.
nlohmann::json run_wire(const WireOptions& options, const std::function<void(const std::string&)>& progress,
                        const std::function<bool()>& cancelled);

// One worker of it, in a process of its own: prints its measurements as one JSON line.
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
