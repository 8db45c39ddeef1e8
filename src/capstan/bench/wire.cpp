#include "capstan/bench/wire.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capstan/base/failure.h"
#include "capstan/base/text.h"
#include "capstan/bench/wire_check.h"
#include "capstan/client/connector.h"
#include "capstan/client/observer.h"
#include "capstan/launch/local_job.h"
#include "capstan/launch/temporary_folder.h"
#include "capstan/layouts/network_layout.h"
#include "capstan/user_error.h"

namespace capstan::bench {
namespace {

using nlohmann::json;

// Bytes per second that one thread copies between buffers of 256 MB: the best of several passes, since other
// load on the machine only makes it slower.
double memcpy_rate() {
  constexpr std::size_t kBytes = 256'000'000;
  std::vector<char> from(kBytes, 1), to(kBytes, 2);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const auto begin = SteadyClock::now();
    std::memcpy(to.data(), from.data(), kBytes);
    best = std::max(best, kBytes / seconds(SteadyClock::now() - begin));
    from[static_cast<std::size_t>(i)] = to[static_cast<std::size_t>(i) + 1];
  }
  return best;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  const auto at = values.begin() +
                  static_cast<std::ptrdiff_t>(std::min(
                      values.size() - 1, static_cast<std::size_t>(q * static_cast<double>(values.size()))));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// Iterations for about two seconds, by a rough estimate of the rate.
std::uint64_t default_iterations(std::uint64_t bytes, std::uint32_t workers) {
  const double guess = 100e-6 + static_cast<double>(bytes) * (workers + 2) / 5e9;
  return static_cast<std::uint64_t>(std::clamp(2.0 / guess, 10.0, 2000.0));
}

// Resources of the server processes: CPU time, and the largest memory observed while workers ran.
struct ServerUse {
  std::uint64_t rss = 0;
  double cpu = 0;
};

void sample_servers(client::Observer& observer, ServerUse& use) {
  std::uint64_t rss = 0;
  double cpu = 0;
  for (std::size_t s = 0; s < observer.servers(); ++s) {
    const auto status = observer.status(s);
    if (!status) return;
    for (std::size_t w = 0; w < status->workers.size(); ++w) {
      if (status->workers[w].state == wire::WorkerState::kLost)
        throw Failure(kFailed, fmt::format("worker {} is lost; the benchmark cannot continue", w));
    }
    rss += status->rss_bytes;
    cpu += status->cpu_seconds;
  }
  use.rss = std::max(use.rss, rss);
  use.cpu = cpu;
}

WorkerObservation observation_of(const json& result) {
  // JSON has no NaN.
  const auto& weight = result.at("weight");
  return {result.at("applied").get<std::vector<std::uint64_t>>(), result.at("version").get<std::uint64_t>(),
          weight.is_number() ? weight.get<double>() : std::numeric_limits<double>::quiet_NaN(),
          result.at("unlike").get<std::uint64_t>()};
}

// A process that failed after its work was done; empty if none did.
std::string bad_end_of(launch::LocalJob& job) {
  for (const auto& ended : job.reap()) {
    if (ended.exit.code != 0)
      return fmt::format("{} {} failed at its end ({})", ended.is_server ? "server" : "worker", ended.index,
                         ended.exit.text());
  }
  return {};
}

std::vector<std::string> worker_arguments(const WireOptions& options, const launch::LocalJob& job,
                                          std::uint32_t rank, std::uint64_t iterations) {
  return {launch::program("capstan"),
          "bench",
          "wire",
          "--as-worker",
          fmt::format("--rank={}", rank),
          "--server=" + job.address_list(),
          "--model=" + options.model,
          "--transport=" + options.job.transport,
          fmt::format("--iterations={}", iterations),
          fmt::format("--warmup={}", options.warmup)};
}

// A worker's result line; throws Failure if there is none. Polls the servers meanwhile.
json result_of(launch::LocalJob& job, std::uint32_t rank, client::Observer& observer, ServerUse& use,
               TimePoint deadline, const std::function<bool()>& cancelled) {
  while (SteadyClock::now() < deadline) {
    if (cancelled()) throw Failure(kInterrupted, "interrupted");
    if (const auto line = job.worker(rank).read_line(SteadyClock::now() + std::chrono::milliseconds(100))) {
      return json::parse(*line);
    }
    if (job.worker(rank).poll()) {
      // Its result may have arrived in between.
      if (const auto line = job.worker(rank).read_line(SteadyClock::now() + std::chrono::seconds(1)))
        return json::parse(*line);
      break;
    }
    sample_servers(observer, use);
  }
  const auto exit = job.worker(rank).poll();
  const auto words = launch::last_line(job.log_of_worker(rank));
  throw Failure(exit && exit->code == kLost ? kLost : kFailed,
                fmt::format("worker {} failed ({}){}", rank, exit ? exit->text() : "no result in time",
                            words.empty() ? "" : ": " + words));
}

}  // namespace

json run_wire(const WireOptions& options, const std::function<void(const std::string&)>& progress,
              const std::function<bool()>& cancelled) {
  const auto layout = layouts::network_layout(options.model);
  const auto& job_config = options.job;
  if (const auto name = job_config.strategy.substr(0, job_config.strategy.find(':'));
      job_config.strategy == "async:damped" || (name != "sync" && name != "async" && name != "batch"))
    throw UserError(fmt::format("bench wire supports the strategies sync, async and batch:K only, not {}",
                                job_config.strategy));
  const auto optimizers = job_config.optimizer.spec();
  if (!optimizers.groups.empty())
    throw UserError(fmt::format("bench wire has one optimizer for all tensors, not {}", optimizers.kinds()));
  const auto& optimizer = optimizers.first;
  if (optimizer.kind == optimizer::Kind::kSparseAdam)
    throw UserError("bench wire pushes dense gradients, which sparse-adam cannot use; use adam");
  const auto iterations =
      options.iterations > 0 ? options.iterations : default_iterations(layout.bytes(), job_config.workers);
  const auto rate = memcpy_rate();
  progress(fmt::format("memcpy: {:.1f} GB/s", rate / 1e9));

  const launch::TemporaryFolder logs("wire");
  const auto config_file = logs.path() / "config.toml";
  std::ofstream(config_file) << job_config.to_toml();
  launch::LocalJob job({launch::program("capstan"),
                        job_config.servers,
                        {"--config=" + config_file.string()},
                        job_config.listen,
                        {},
                        logs.path()});
  client::LinkOptions link;
  link.servers = job.addresses();
  link.token = job.token();
  auto observer =
      client::Observer::join(link, client::make_connector(client::parse_transport(job_config.transport)));
  if (!observer) throw Failure(kLost, observer.status().message());
  for (std::uint32_t r = 0; r < job_config.workers; ++r) {
    job.start_worker(worker_arguments(options, job, r, iterations), true);
  }
  progress(fmt::format("{}: {}, {:.1f} MB, {}, {}", options.model, counted(layout.tensors().size(), "tensor"),
                       static_cast<double>(layout.bytes()) / 1e6, counted(job_config.workers, "worker"),
                       counted(iterations, "iteration")));
  ServerUse use;
  std::vector<json> results;
  const auto deadline = SteadyClock::now() + std::chrono::minutes(30);
  for (std::uint32_t r = 0; r < job_config.workers; ++r)
    results.push_back(result_of(job, r, **observer, use, deadline, cancelled));
  sample_servers(**observer, use);
  observer->reset();
  job.wait(SteadyClock::now() + std::chrono::seconds(5));
  const auto bad_end = bad_end_of(job);

  std::vector<double> marks;
  double wall = 0, worker_cpu = 0;
  for (const auto& r : results) {
    wall = std::max(wall, r.at("wall").get<double>());
    worker_cpu += r.at("cpu_seconds").get<double>();
    for (const auto& m : r.at("marks")) marks.push_back(m.get<double>());
  }
  const double per_iteration = wall / static_cast<double>(iterations);
  const double bytes = static_cast<double>(layout.bytes());
  const double state = optimizer::Optimizer(optimizer, {}).state_tensors();
  const double n = job_config.workers;
  const double passes = job_config.strategy == "async" ? n * (2 + 2 * (1 + state)) : 2 * n + 2 * (1 + state);
  const double floor = passes * bytes / (2 * rate);
  std::vector<WorkerObservation> observations;
  for (const auto& r : results) observations.push_back(observation_of(r));
  auto fault = check_weights(observations, optimizer);
  if (fault.empty()) fault = bad_end;
  json out = {{"ok", fault.empty()},
              {"model", options.model},
              {"bytes", layout.bytes()},
              {"tensors", layout.tensors().size()},
              {"workers", job_config.workers},
              {"servers", job_config.servers},
              {"strategy", job_config.strategy},
              {"optimizer", optimizers.kinds()},
              {"transport", results[0].at("transport")},
              {"iterations", iterations},
              {"seconds_per_iteration", per_iteration},
              {"p50_us", quantile(marks, 0.5) * 1e6},
              {"p99_us", quantile(marks, 0.99) * 1e6},
              {"gigabytes_per_second", n * 2 * bytes / per_iteration / 1e9},
              {"memcpy_gigabytes_per_second", rate / 1e9},
              {"floor_seconds", floor},
              {"floor_ratio", per_iteration / floor},
              {"server_rss_bytes", use.rss},
              {"server_cpu_seconds", use.cpu},
              {"worker_cpu_seconds", worker_cpu}};
  if (!fault.empty()) out["error"] = fault;
  return out;
}

}  // namespace capstan::bench
