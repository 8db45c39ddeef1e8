// Predicts a job's performance on another cluster.

#include <fstream>
#include <limits>

#include <fmt/format.h>

#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/status_line.h"
#include "capstan/layouts/network_layout.h"
#include "capstan/report/scaling.h"
#include "capstan/report/simulation.h"
#include "capstan/simulate/forecast.h"
#include "capstan/simulate/scenario.h"
#include "capstan/simulate/sweep.h"
#include "capstan/user_error.h"

namespace capstan::cli {
namespace {

constexpr std::uint64_t kMostWorkers = 65536;
constexpr std::uint64_t kMostServers = 4096;
constexpr std::uint64_t kSweepPushes = 100'000;  // per point, unless --steps is given

struct Flags {
  std::string strategies = "sync,async";
  std::string sweep;
  std::filesystem::path html = "simulate.html";
  simulate::Cluster cluster;
  simulate::ScenarioOptions options;
  bool json = false;
};

simulate::ScenarioFacts facts(std::uint64_t workers) {
  return {[](const std::string& model) { return layouts::network_layout(model).size(); },
          [workers](const std::string& text) {
            return config::parse_slow_workers(text, static_cast<std::uint32_t>(workers));
          }};
}

int run_once(const Flags& flags, const simulate::Scenario& scenario,
             const std::vector<std::string>& strategies) {
  const auto results = [&] {
    StatusLine notice;
    return simulate::forecast(scenario.cluster, strategies, [&](const auto& line) { notice.show(line); });
  }();
  fmt::print("{}", flags.json ? report::simulation_json(scenario, results) + "\n"
                              : report::simulation_text(scenario, results));
  return kSuccess;
}

int run_sweep(const Flags& flags, const simulate::Scenario& scenario,
              const std::vector<std::string>& strategies) {
  const auto range = simulate::SweepRange::parse(flags.sweep);
  std::vector<simulate::Curve> curves;
  {
    StatusLine notice;
    // A point of a curve needs fewer pushes than a prediction.
    const auto pushes = flags.options.steps > 0 ? std::numeric_limits<std::uint64_t>::max() : kSweepPushes;
    curves = simulate::sweep(scenario.cluster, strategies, range, pushes,
                             [&](std::size_t done, std::size_t all, const std::string& what) {
                               notice.show(fmt::format("{} of {}: {}", done + 1, all, what));
                             });
  }
  std::ofstream out(flags.html);
  out << report::scaling_page(report::sweep_page(scenario, range, curves));
  out.close();
  if (!out) throw UserError(fmt::format("--html {}: cannot be written", flags.html.string()));
  const auto page = flags.html.string();
  fmt::print("{}\n", flags.json ? report::sweep_json(scenario, range, curves, page)
                                : report::sweep_text(range, curves) + page);
  return kSuccess;
}

}  // namespace

int run_simulate(const Arguments& arguments) {
  Flags flags;
  auto& c = flags.cluster;
  auto& o = flags.options;
  c.workers = 8;
  CommandLine line("simulate",
                   "Predicts how a job would run on another cluster: runs the servers' strategies\n"
                   "and placement on a simulated clock. Nothing is trained.\n\n"
                   "  capstan simulate --strategy sync,async,ssp:3 --workers 1000 --servers 16 \\\n"
                   "    --model resnet50 --compute \"lognormal(0.2,0.5)\" --bandwidth 10Gbps \\\n"
                   "    --latency 50us --failures 1/h\n"
                   "  capstan simulate --workers 8 --slow-worker 3:10x --strategy sync,backup:1\n"
                   "  capstan simulate --sweep workers=1..4096 --strategy sync,ssp:3 --servers 16\n"
                   "  capstan simulate --calibrate runs/MY-RUN --cores 8 --workers 4\n\n"
                   "Prints throughput, staleness, dropped work, bytes, the load of servers, how\n"
                   "workers spend their time, and the bottleneck, which is found by removing one\n"
                   "limit at a time and simulating again. docs/simulation.md describes the model.\n");
  using Whole = config::WholeRange;
  using Number = config::NumberRange;
  line.group("Job");
  line.flag("strategy", &flags.strategies, "One or more, separated by commas: sync,async,ssp:3,backup:1 …",
            {}, "LIST");
  line.flag("workers", &c.workers, "Number of workers", Whole{1, kMostWorkers});
  line.flag("servers", &c.servers, "Number of servers; each holds a shard", Whole{1, kMostServers});
  line.flag("model", &o.model, "A network (capstan models lists all) or bytes:N (default resnet50)", {},
            "NAME")
      .also = "--network";
  line.flag("batch-size", &o.batch, "Samples per worker and step (default 64)", Whole{1, 1u << 20});
  line.flag("samples", &c.samples, "Samples of the training set, for strategies that count epochs",
            Whole{1, 1'000'000'000'000});
  line.flag("steps", &o.steps,
            "Mean number of rounds per worker to simulate; a round ends with a push (default 1000)",
            Whole{1, 1'000'000'000});
  line.flag("state-tensors", &o.state_tensors,
            "Values of optimizer state per weight: 2 for adam (default 1, sgd)", Whole{0, 16});
  line.group("Workers");
  line.flag("compute", &o.compute,
            "Seconds for one batch: a number, lognormal(median,sigma), uniform(a,b), "
            "exponential(mean), normal(mean,sd) (default 0.1)",
            {}, "TIME");
  line.flag("slow-worker", &o.slow_workers, "Ranks that take longer: 1:3x,5:2x", {}, "LIST");
  line.flag("failures", &o.failures, "How often each worker fails: 1/h, 3/day", {}, "RATE");
  line.flag("repair", &o.repair, "Time until a failed worker rejoins", {}, "TIME");
  line.group("Network");
  line.flag("bandwidth", &o.bandwidth,
            "Bandwidth of every link, each way: 10Gbps, 1.25GB/s, inf (default 10Gbps)", {}, "RATE");
  line.flag("server-bandwidth", &o.server_bandwidth, "Bandwidth of the servers' links, if different", {},
            "RATE");
  line.flag("latency", &o.latency, "Latency one way: 50us, 1ms (default 50us)", {}, "TIME");
  line.group("Machines");
  line.flag("memory-rate", &o.memory_rate, "Bytes per second that a server's updates read and write", {},
            "RATE");
  line.flag("cores", &o.cores,
            "Run all processes on one machine with this many cores; they share cores and memory, and "
            "links are used only if given",
            Number{0.01, 1e6});
  line.flag("threads", &o.threads, "With --cores: cores that a worker uses if they are free (default 1)",
            Number{0.01, 1e6});
  line.flag("compute-memory", &o.compute_memory,
            "With --cores: memory traffic of a computing worker in bytes per second (default 0)", {}, "RATE");
  line.flag("calibrate", &o.calibrate,
            "Take times, model and batch size from a run's folder, preferably of a run with 1 worker", {},
            "RUN");
  line.flag("spread", &o.spread, "With --calibrate: sigma of the lognormal distribution of times per batch",
            Number{0, 5});
  line.group("Sweep");
  line.flag("sweep", &flags.sweep, "Plot throughput over workers=1..4096 or servers=1..64, by doubling", {},
            "RANGE");
  line.flag("html", &flags.html, "File for the sweep's page", {}, "FILE");
  line.group("Options");
  line.flag("seed", &c.seed, "Seed of all random times");
  line.flag("json", &flags.json, "Print one JSON object on standard output");
  if (!line.parse(arguments)) return kSuccess;

  // In a sweep over workers, checked with the largest number.
  const auto range = flags.sweep.empty() ? simulate::SweepRange{} : simulate::SweepRange::parse(flags.sweep);
  const bool grows = !range.values.empty() && range.axis == simulate::SweepRange::Axis::kWorkers;
  const auto strategies =
      simulate::split_strategies(flags.strategies, grows ? range.values.back() : c.workers);
  o.sweeps = !flags.sweep.empty();
  const auto scenario = simulate::make_scenario(c, o, facts(o.sweeps ? kMostWorkers : c.workers));
  return o.sweeps ? run_sweep(flags, scenario, strategies) : run_once(flags, scenario, strategies);
}

}  // namespace capstan::cli
