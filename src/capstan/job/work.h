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

// One worker of a job.
struct WorkOptions {
  config::JobConfig config;
  std::vector<std::string> servers;   // addresses; the first server leads
  std::optional<std::uint32_t> rank;  // none: the first place that is free
  double connect_timeout = 30;        // seconds
  std::filesystem::path save;         // takes the weights it ends with; empty: none
  std::optional<double> slow_down;    // every step takes so many times as long; none: as configured
  cluster::Token token;
  // Called on another thread where the worker is asked to end while it only waits, or twice. Ends the
  // process: nothing else ends a wait in a library.
  std::function<void()> end_at_once;
};

struct WorkResult {
  std::uint32_t rank = 0;
  training::WorkerResult worked;
  bool interrupted = false;

  std::string json() const;  // of `work --json`, one line
  std::string text() const;  // for people
};

// Works until its epochs are done, the servers say stop or the user asks to end. Throws UserError for wrong
// options, Failure where the servers refuse it or are lost.
WorkResult work(const WorkOptions& options, Environment environment);

}  // namespace capstan::job
