#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <spdlog/logger.h>

#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/cluster/token.h"
#include "capstan/config/job_config.h"
#include "capstan/job/environment.h"
#include "capstan/wire/messages.h"

namespace capstan::job {

// One server of a job.
struct ServeOptions {
  config::JobConfig config;
  std::string leader;  // HOST:PORT of the first server; empty where this is it
  std::uint64_t total_steps = 0;
  std::uint64_t loss_window = 100;
  cluster::Token token;
  std::optional<checkpoint::Found> resume;
  std::shared_ptr<spdlog::logger> log;
  // Called where the user asks twice to end. Ends the process: a disk that does not answer holds a thread
  // that would be waited for.
  std::function<void()> end_at_once;
};

struct ServeResult {
  wire::StatusReport status;
  bool leads = true;
  bool interrupted = false;

  std::string json() const;  // of `serve --json`, one line
  std::string text() const;  // for people
};

// Serves until the workers have left, or the user asks to end: then workers finish their step, and what was
// reached is saved. `listening` is told the address when workers can join. Throws UserError for options that
// make no sense, Failure where all workers or a server are lost.
ServeResult serve(const ServeOptions& options, Environment environment,
                  const std::function<void(const std::string& address)>& listening);

}  // namespace capstan::job
