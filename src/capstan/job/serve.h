#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <spdlog/logger.h>

#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/client/connector.h"
#include "capstan/cluster/token.h"
#include "capstan/config/job_config.h"
#include "capstan/job/environment.h"
#include "capstan/server/server.h"
#include "capstan/wire/messages.h"

namespace capstan::job {

// Options of one server.
struct ServeOptions {
  config::JobConfig config;
  std::string leader;  // HOST:PORT of the leader; empty: this server is the leader
  std::uint64_t total_steps = 0;
  std::uint64_t loss_window = 100;
  cluster::Token token;
  std::optional<checkpoint::Found> resume;
  std::shared_ptr<spdlog::logger> log;
};

struct ServeResult {
  wire::StatusReport status;
  bool leads = true;  // this server is the leader
  bool interrupted = false;

  std::string json() const;  // of `serve --json`, one line
  std::string text() const;  // for the user
};

// Where a server listens, and which server leads.
struct ServerPlace {
  std::string listen = "127.0.0.1:0";
  client::TransportChoice transport = client::TransportChoice::kAuto;
  std::string leader;  // HOST:PORT; empty: this server
};

// Serves until all workers have left, or after a stop request: then `interrupted` is set. Calls `listening`
// when workers can join. Throws UserError for invalid options, Failure if all workers or a server are lost.
ServeResult run_server(server::ServerOptions options, const ServerPlace& place, Environment environment,
                       const std::shared_ptr<spdlog::logger>& log,
                       const std::function<void(const std::string& address)>& listening);

// Serves until all workers have left. On a stop request, workers finish their step and the last version is
// saved. Calls `listening` when workers can join. Throws UserError for invalid options, Failure if all
// workers or a server are lost.
ServeResult serve(const ServeOptions& options, Environment environment,
                  const std::function<void(const std::string& address)>& listening);

}  // namespace capstan::job
