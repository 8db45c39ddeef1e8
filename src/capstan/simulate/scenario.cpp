#include "capstan/simulate/scenario.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "capstan/base/text.h"
#include "capstan/simulate/calibration.h"
#include "capstan/simulate/units.h"
#include "capstan/user_error.h"

namespace capstan::simulate {
namespace {

constexpr std::uint64_t kRounds = 1000;
constexpr const char* kModel = "resnet50";

std::string or_else(const std::string& text, const char* missing) {
  return text.empty() ? missing : text;
}

void set_links(Cluster& c, const ScenarioOptions& o) {
  const bool one_machine = o.cores > 0;
  c.bandwidth = parse_rate("--bandwidth", or_else(o.bandwidth, one_machine ? "inf" : "10Gbps"));
  c.latency = parse_time("--latency", or_else(o.latency, one_machine ? "0s" : "50us"));
  if (!o.server_bandwidth.empty()) c.server_bandwidth = parse_rate("--server-bandwidth", o.server_bandwidth);
  c.memory_rate = parse_rate("--memory-rate", o.memory_rate);
}

// Takes options that are not given from a measured run. Returns the threads of a worker.
double calibrate(Scenario& scenario, const ScenarioOptions& o) {
  auto& c = scenario.cluster;
  const auto run = Calibration::read(o.calibrate);
  const double threads =
      o.threads.value_or(o.cores > 0 && !o.sweeps ? std::max(1.0, std::floor(o.cores / c.workers)) : 1);
  scenario.calibrated =
      fmt::format("from {}: {} of {} samples on {}", o.calibrate.string(), time_text(run.compute), run.batch,
                  counted(static_cast<std::uint64_t>(run.threads), "thread"));
  if (scenario.model.empty()) {
    scenario.model = run.network;
    c.elements = run.elements;
  }
  if (!o.batch) c.batch = run.batch;
  if (!o.state_tensors) c.state_tensors = run.state_tensors;
  if (o.compute.empty()) {
    // Assumes that compute time is proportional to samples and, on one machine, inversely to threads.
    const double scale = c.batch / static_cast<double>(run.batch) * (o.cores > 0 ? run.threads / threads : 1);
    c.compute = Distribution::around(run.compute * scale, o.spread);
  }
  if (o.cores > 0 && o.latency.empty() && run.exchange > 0) {
    run.set_exchange(c);
    scenario.calibrated += fmt::format(", exchange {}", time_text(run.exchange));
  }
  return threads;
}

void set_machine(Cluster& c, const ScenarioOptions& o, std::optional<double> threads) {
  if (o.cores > 0) {
    const double traffic = o.compute_memory.empty() ? 0 : parse_rate("--compute-memory", o.compute_memory);
    if (traffic > c.memory_rate)
      throw UserError(fmt::format("--compute-memory {}: must be at most --memory-rate {}", o.compute_memory,
                                  o.memory_rate));
    c.machine = SharedMachine{o.cores, threads.value_or(1), traffic};
    c.detection = 0;  // the end of a process is detected at once
  } else if (threads && o.calibrate.empty()) {
    throw UserError("--threads needs --cores, the number of shared cores");
  } else if (!o.compute_memory.empty()) {
    throw UserError("--compute-memory needs --cores, the number of shared cores");
  }
}

}  // namespace

Scenario make_scenario(Cluster cluster, const ScenarioOptions& o, const ScenarioFacts& facts) {
  Scenario scenario{std::move(cluster), o.model, o.slow_workers, ""};
  auto& c = scenario.cluster;
  set_links(c, o);
  c.failures = parse_frequency("--failures", o.failures);
  c.repair = parse_time("--repair", o.repair);
  c.rounds = o.steps > 0 ? o.steps : kRounds;
  c.batch = o.batch.value_or(c.batch);
  c.state_tensors = o.state_tensors.value_or(c.state_tensors);
  c.slowness = facts.slowness(o.slow_workers);
  auto threads = o.threads;
  if (!o.calibrate.empty())
    threads = calibrate(scenario, o);
  else if (o.spread > 0)
    throw UserError("--spread needs --calibrate; otherwise use --compute \"lognormal(median,sigma)\"");
  if (scenario.model.empty()) scenario.model = kModel;
  if (c.elements == 0) c.elements = facts.elements(scenario.model);
  if (!o.compute.empty()) c.compute = Distribution::parse("--compute", o.compute);
  if (c.compute.mean() <= 0) throw UserError(fmt::format("--compute {}: must be above 0", o.compute));
  set_machine(c, o, threads);
  return scenario;
}

}  // namespace capstan::simulate
