#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capstan/cluster/token.h"
#include "capstan/config/job_config.h"
#include "capstan/job/environment.h"
#include "capstan/training/worker.h"

namespace capstan::job {

// Options of one worker.
struct WorkOptions {
  config::JobConfig config;
  std::vector<std::string> servers;   // addresses; the leader's first
  std::optional<std::uint32_t> rank;  // none: the lowest free rank
  double connect_timeout = 30;        // seconds
  std::filesystem::path save;         // file for the final weights; empty: none
  std::optional<double> slow_down;    // factor on the duration of a step; none: as configured
  cluster::Token token;
};

struct WorkResult {
  std::uint32_t rank = 0;
  training::WorkerResult worked;
  bool interrupted = false;

  std::string json() const;  // of `work --json`, one line
  std::string text() const;  // for the user
};

// Trains until its epochs are done, or the servers or the user request a stop. Throws UserError for wrong
// options, Failure if the servers refuse the worker or are lost.
WorkResult work(const WorkOptions& options, Environment environment);

}  // namespace capstan::job
