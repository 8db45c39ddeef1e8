#include "capstan/job/serve.h"

#include <algorithm>

#include <fmt/format.h>
#include <sys/epoll.h>

#include "capstan/base/failure.h"
#include "capstan/base/json.h"
#include "capstan/base/text.h"
#include "capstan/config/shared_fields.h"
#include "capstan/job/module_file.h"
#include "capstan/transport/listeners.h"
#include "capstan/user_error.h"

namespace capstan::job {
namespace {

using Outcome = server::Server::Outcome;

constexpr auto kPollInterval = std::chrono::milliseconds(1000);
constexpr auto kStepTimeout = std::chrono::seconds(3);  // for the current step, after a stop request

// A worker's text comes from the network: an invalid one is refused too.
server::JobDescription description(const config::JobConfig& config) {
  auto text = config::job_text(config);
  return {text, [text](const std::string& members) -> std::string {
            try {
              return config::contradictions(text, members);
            } catch (const UserError& error) {
              return error.what();
            }
          }};
}

server::ServerOptions server_options(const ServeOptions& options) {
  auto config = options.config;
  if (config.optimizer.lr_schedule == "cosine" && options.total_steps == 0)
    throw UserError("--lr-schedule cosine needs --total-steps: the number of updates of the whole run");
  config.optimizer.prefer(config.strategy_spec());
  set_module_digest(config);
  server::ServerOptions out;
  out.job = {strategy::strategy_spec_text(config.strategy, config.switches), config.workers, config.servers,
             config.max_steps, options.loss_window};
  out.optimizer = config.optimizer.spec();
  out.schedule = config.optimizer.schedule(options.total_steps);
  out.threads = config.threads_per_server();
  out.members.token = options.token;
  out.join_timeout = from_seconds(config.join_timeout);
  const auto every = config::CheckpointEvery::parse(config.checkpoint_every);
  if (every.steps > 0 || every.seconds > 0)
    out.checkpoints = {config.train_dir, every.steps, from_seconds(every.seconds), config.keep};
  out.resume = options.resume;
  out.description = description(config);
  return out;
}

// A new run would set aside the existing checkpoints, and remove them later.
void check_folder(const ServeOptions& options) {
  const auto& run = options.config.train_dir;
  if (!options.leader.empty() || options.resume || run.empty() || checkpoint::list(run).empty()) return;
  throw UserError(
      fmt::format("{} already has checkpoints: use another --train-dir, or --resume auto", run.string()));
}

void check(Outcome outcome, bool any_joined, double join_timeout) {
  switch (outcome) {
    case Outcome::kAllWorkersLost:
      throw Failure(kLost, any_joined
                               ? "all workers are lost"
                               : fmt::format("no worker joined within {} s (--join-timeout)", join_timeout));
    case Outcome::kLeaderLost:
      throw Failure(kLost, "the leader is lost");
    case Outcome::kCheckpointUnreadable:
      throw Failure(kFailed, "cannot read the checkpoint to resume from");
    case Outcome::kFollowerLost:
      throw Failure(kLost, "a follower is lost, with its range of the weights");
    default:
      return;
  }
}

// Runs a server's loop until the job ends, by itself or after a stop request.
class ServeLoop {
 public:
  ServeLoop(transport::EventLoop& loop, server::Server& server, Environment environment, bool leads)
      : loop_(loop), server_(server), environment_(std::move(environment)), any_joined_(!leads) {
    if (environment_.stop.fd() >= 0)
      loop_.watch(environment_.stop.fd(), EPOLLIN, [this](auto) { handle_stop(); });
  }
  ~ServeLoop() {
    if (environment_.stop.fd() >= 0) loop_.unwatch(environment_.stop.fd());
  }

  // True after a stop request.
  bool run() {
    while (server_.outcome() == Outcome::kRunning && !is_over()) {
      loop_.run_once(SteadyClock::now() + kPollInterval);
      if (!any_joined_) any_joined_ = has_live_worker();
      handle_stop();
      if (stopping_since_ && environment_.now() - *stopping_since_ > kStepTimeout) dismiss_workers();
    }
    return stopping_since_.has_value();
  }

  bool any_joined() const { return any_joined_; }

 private:
  bool has_live_worker() const {
    const auto status = server_.status();
    return std::ranges::count(status.workers, wire::WorkerState::kLive, &wire::WorkerRow::state) > 0;
  }

  void handle_stop() {
    requests_ = environment_.stop.requests();
    if (requests_ > 1 && environment_.end_at_once) environment_.end_at_once();
    if (requests_ == 0 || stopping_since_) return;
    stopping_since_ = environment_.now();
    server_.stop();
  }

  // After kStepTimeout the last version is saved without waiting for the workers.
  void dismiss_workers() {
    if (!std::exchange(dismissed_, true)) server_.dismiss_workers();
  }

  // A checkpoint in progress is completed, unless the user sends a second request. Before training has
  // started, there is nothing to wait for.
  bool is_over() const {
    if (!stopping_since_) return false;
    if (requests_ > 1) return true;
    const auto status = server_.status();
    return !status.started || (dismissed_ && !status.saving);
  }

  transport::EventLoop& loop_;
  server::Server& server_;
  Environment environment_;
  int requests_ = 0;
  std::optional<TimePoint> stopping_since_;
  bool dismissed_ = false;
  bool any_joined_;  // only the leader knows the workers: a follower does not look for them after each event
};

}  // namespace

ServeResult run_server(server::ServerOptions options, const ServerPlace& place, Environment environment,
                       const std::shared_ptr<spdlog::logger>& log,
                       const std::function<void(const std::string&)>& listening) {
  using client::TransportChoice;
  (void)client::parse_address(place.listen);
  transport::EventLoop loop;
  const auto connector = client::make_connector(place.transport);
  std::unique_ptr<transport::Listeners> listeners;  // outlives the server, which owns the connections
  const bool leads = place.leader.empty();
  if (!leads) options.connect_to_leader = [&] { return connector(loop, place.leader); };
  server::Server server(loop, options, log);
  listeners = std::make_unique<transport::Listeners>(
      loop,
      transport::Listeners::Options{place.listen, place.transport != TransportChoice::kUcx,
                                    place.transport != TransportChoice::kLocal},
      [&](auto connection) { server.accept(std::move(connection)); });
  listening(listeners->address());
  ServeLoop serving(loop, server, environment, leads);
  const bool interrupted = serving.run();
  if (!interrupted) check(server.outcome(), serving.any_joined(), seconds(options.join_timeout));
  return {server.status(), leads, interrupted};
}

ServeResult serve(const ServeOptions& options, Environment environment,
                  const std::function<void(const std::string&)>& listening) {
  check_folder(options);
  const ServerPlace place{options.config.listen, client::parse_transport(options.config.transport),
                          options.leader};
  return run_server(server_options(options), place, std::move(environment), options.log, listening);
}

std::string ServeResult::json() const {
  const auto lost = std::ranges::count(status.workers, wire::WorkerState::kLost, &wire::WorkerRow::state);
  Json json{{"ok", !interrupted},
            {"steps", status.version.value},
            {"seconds", status.seconds},
            {"workers", status.workers.size()},
            {"lost_workers", lost},
            {"dropped_pushes", status.dropped_pushes},
            {"staleness_mean", status.staleness_mean},
            {"staleness_max", status.staleness_max}};
  if (interrupted) json["error"] = "interrupted";
  return json_line(json);
}

std::string ServeResult::text() const {
  const auto lost = std::ranges::count(status.workers, wire::WorkerState::kLost, &wire::WorkerRow::state);
  return fmt::format("{} updates in {:.1f} s, {} of {} workers lost", status.version.value, status.seconds,
                     lost, status.workers.size());
}

}  // namespace capstan::job
