#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>

#include "capstan/base/json.h"
#include "capstan/base/user_error.h"
#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/output.h"
#include "capstan/cli/resume.h"
#include "capstan/cli/signals.h"
#include "capstan/cli/strategy_help.h"
#include "capstan/client/connector.h"
#include "capstan/server/server.h"
#include "capstan/transport/local/local.h"
#include "capstan/transport/ucx/ucx.h"

namespace capstan::cli {
namespace {

struct ServeOptions {
  config::JobConfig job;
  std::string leader;
  std::uint64_t total_steps = 0;
  std::uint64_t loss_window = 100;
  bool json = false;
  bool verbose = false;
};

// The listeners of one server: shared memory and UCX under one port number.
struct Listeners {
  std::unique_ptr<transport::Listener> remote, local;
  std::string address;  // what clients are told
};

// `ucx` is opened where it is needed, and must outlive the connections.
Listeners open_listeners(transport::EventLoop& loop, const ServeOptions& options,
                         std::unique_ptr<transport::ucx::Context>& ucx, const transport::Accept& accept) {
  const auto choice = client::parse_transport(options.job.transport);
  Listeners listeners;
  auto [host, port] = client::parse_address(options.job.listen);
  if (choice != client::TransportChoice::kLocal) {
    ucx = transport::ucx::Context::open(loop);
    listeners.remote = ucx->listen(options.job.listen, accept);
    listeners.address = listeners.remote->address();
    port = client::parse_address(listeners.address).port;
  }
  if (choice != client::TransportChoice::kUcx) listeners.local = transport::local::listen(loop, port, accept);
  if (!listeners.remote)
    listeners.address = fmt::format("{}:{}", host, client::parse_address(listeners.local->address()).port);
  return listeners;
}

void report(const server::Server& server, const server::ServerOptions& options, bool json) {
  const auto status = server.status();
  if (options.connect_to_leader) return;
  const auto lost = std::ranges::count(status.workers, wire::WorkerState::kLost, &wire::WorkerRow::state);
  if (json) {
    fmt::print("{}\n", json_line(Json{{"ok", true},
                                      {"steps", status.version.value},
                                      {"seconds", status.seconds},
                                      {"workers", status.workers.size()},
                                      {"lost_workers", lost},
                                      {"dropped_pushes", status.dropped_pushes},
                                      {"staleness_mean", status.staleness_mean},
                                      {"staleness_max", status.staleness_max}}));
    return;
  }
  say(fmt::format("{} updates in {:.1f} s, {} of {} workers lost", status.version.value, status.seconds, lost,
                  status.workers.size()));
}

int exit_code(server::Server::Outcome outcome) {
  using Outcome = server::Server::Outcome;
  switch (outcome) {
    case Outcome::kAllWorkersLost:
      throw Failure(kLost, "all workers are lost");
    case Outcome::kLeaderLost:
      throw Failure(kLost, "the first server is lost");
    case Outcome::kCheckpointUnreadable:
      throw Failure(kFailed, "the checkpoint to begin from cannot be read");
    case Outcome::kFollowerLost:
      throw Failure(kLost, "a server is lost, and its part of the weights with it");
    default:
      return kSuccess;
  }
}

}  // namespace

int run_serve(const Arguments& arguments) {
  if (asks_for_strategies(arguments)) return kSuccess;
  ServeOptions options;
  CommandLine line("serve",
                   "One parameter server: holds weights, takes gradients, gives new weights.\n"
                   "Says \"listening on HOST:PORT\" when workers can join (on standard output, with\n"
                   "--json on standard error); ends when they have left.\n\n"
                   "  capstan serve --listen 0.0.0.0:7000 --workers 4 --token-file job.token\n"
                   "  capstan work --server thathost:7000 --token-file job.token      (four times)\n\n"
                   "With several servers the first leads, and workers name it first (all with the\n"
                   "token, as above):\n\n"
                   "  capstan serve --listen 0.0.0.0:7000 --workers 4 --servers 2\n"
                   "  capstan serve --listen 0.0.0.0:7001 --leader thathost:7000\n"
                   "  capstan work --server thathost:7000,otherhost:7001\n");
  line.add({.name = "leader",
            .value = &options.leader,
            .help = "HOST:PORT of the first server, which this one follows",
            .group = "Connection"});
  line.add(options.job, config::kServe);
  line.describe("train-dir", "Run folder that takes the checkpoints (default: none are written)");
  line.add({.name = "total-steps",
            .value = &options.total_steps,
            .help = "Updates of the whole run (where workers train alone: their own steps), for cosine",
            .group = "Optimizer"});
  line.add({.name = "loss-window",
            .value = &options.loss_window,
            .limits = config::WholeRange{1, 1'000'000},
            .help = "Updates over which the reported loss is the mean",
            .group = "Job"});
  line.add({.name = "json", .value = &options.json, .help = "Print the result as one JSON object"});
  line.add({.name = "verbose", .also = "-v", .value = &options.verbose, .help = "Log who joins and leaves"});
  if (!line.parse(arguments)) return kSuccess;
  if (!options.job.has_servers())
    throw UserError(
        fmt::format("strategy {0} has no server: use capstan train --strategy {0}", options.job.strategy));

  Interrupts interrupts;
  const auto log =
      std::make_shared<spdlog::logger>("server", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  log->set_pattern("%H:%M:%S.%e server: %v");
  log->set_level(options.verbose ? spdlog::level::debug : spdlog::level::warn);

  server::ServerOptions server_options;
  server_options.job = {strategy::strategy_spec_text(options.job.strategy, options.job.switches),
                        options.job.workers, options.job.servers, options.job.max_steps, options.loss_window};
  options.job.optimizer.prefer(options.job.plan());
  server_options.optimizer = options.job.optimizer.options();
  server_options.schedule = options.job.optimizer.schedule(options.total_steps);
  server_options.threads = options.job.threads_per_server();
  server_options.members.token = cluster::find_token(options.job.token_file);
  server_options.join_timeout = from_seconds(options.job.join_timeout);
  const auto every = config::CheckpointEvery::parse(options.job.checkpoint_every);
  if (every.steps > 0 || every.seconds > 0)
    server_options.checkpoints = {options.job.train_dir, every.steps, from_seconds(every.seconds),
                                  options.job.keep};
  std::vector<std::string> complaints;
  if (auto resumed = find_resume(options.job, complaints)) server_options.resume = std::move(resumed->from);
  for (const auto& complaint : complaints) log->warn("{}", complaint);

  transport::EventLoop loop;
  const auto connector = client::make_connector(client::parse_transport(options.job.transport));
  std::unique_ptr<transport::ucx::Context> ucx;
  if (!options.leader.empty())
    server_options.connect_to_leader = [&] { return connector(loop, options.leader); };
  server::Server server(loop, server_options, log);
  const auto listeners =
      open_listeners(loop, options, ucx, [&](auto connection) { server.accept(std::move(connection)); });
  bool interrupted = false;
  TimePoint give_up = TimePoint::max();
  loop.watch(interrupts.fd(), EPOLLIN, [&](std::uint32_t) {
    if (interrupts.count() == 1) {
      interrupted = true;
      // Workers finish their step; where none has begun, there is nothing to wait for.
      give_up = SteadyClock::now() + std::chrono::seconds(server.status().started ? 3 : 0);
      server.stop();
    } else {
      give_up = SteadyClock::now();
    }
  });
  if (options.json) {
    say("listening on " + listeners.address);
  } else {
    fmt::print("listening on {}\n", listeners.address);
    std::fflush(stdout);
  }

  while (server.outcome() == server::Server::Outcome::kRunning && SteadyClock::now() < give_up) {
    loop.run_once(std::min(give_up, SteadyClock::now() + std::chrono::seconds(1)));
  }
  loop.unwatch(interrupts.fd());
  const int code = interrupted ? kInterrupted : exit_code(server.outcome());
  report(server, server_options, options.json);
  return code;
}

}  // namespace capstan::cli
