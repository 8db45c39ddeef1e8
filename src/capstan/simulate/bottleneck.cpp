#include "capstan/simulate/bottleneck.h"

#include <algorithm>

#include <fmt/format.h>

#include "capstan/simulate/simulation.h"
#include "capstan/simulate/units.h"
#include "capstan/user_error.h"

namespace capstan::simulate {
namespace {

constexpr double kFull = 0.9;               // busy
constexpr double kHelps = 1.1;              // factor on samples/s
constexpr std::uint64_t kLeastRounds = 10;  // of a worker, per simulation

double speed(Cluster cluster, const std::string& strategy, std::uint64_t pushes) {
  cluster.rounds = std::min(cluster.rounds, std::max(kLeastRounds, pushes / cluster.workers));
  return simulate(cluster, strategy::parse(strategy, cluster.workers)).samples_per_second;
}

// The cluster without this limit; no value if it has no effect already.
std::optional<Cluster> freed(const Cluster& cluster, Limit limit, const Prediction& p) {
  auto c = cluster;
  switch (limit) {
    case Limit::kServerLinks:
      if (p.incoming + p.outgoing == 0) return {};
      c.server_bandwidth = Cluster::kUnlimited;
      return c;
    case Limit::kOwnLinks:
      // A slow link costs time, but it is the bottleneck only if it takes longer than computing.
      if (p.part(TimeCategory::kOwnLink) <= p.part(TimeCategory::kCompute)) return {};
      c.server_bandwidth = c.server_bandwidth.value_or(c.bandwidth);
      c.bandwidth = Cluster::kUnlimited;
      c.latency = 0;
      return c;
    case Limit::kUpdates:
      if (p.updating == 0) return {};
      c.memory_rate = Cluster::kUnlimited;
      return c;
    case Limit::kOthers:
      if (p.part(TimeCategory::kOthers) + p.part(TimeCategory::kDown) == 0) return {};
      c.compute = Distribution::constant(c.compute.mean());
      c.slowness.clear();
      return c;
    case Limit::kCores:
      if (!c.machine || p.part(TimeCategory::kCores) == 0) return {};
      c.machine->cores = Cluster::kUnlimited;
      return c;
    case Limit::kFailures:
      if (p.failures == 0) return {};
      c.failures = 0;
      return c;
    case Limit::kComputing:
      break;
  }
  return {};
}

std::string percent(double part) {
  return fmt::format("{:.0f} %", 100 * part);
}

std::string description(Limit limit, const Cluster& c, const Prediction& p) {
  switch (limit) {
    case Limit::kServerLinks: {
      if (p.incoming > 1.2 * p.outgoing)
        return fmt::format("the servers' incoming links ({} busy)", percent(p.incoming));
      if (p.outgoing > 1.2 * p.incoming)
        return fmt::format("the servers' outgoing links ({} busy)", percent(p.outgoing));
      return fmt::format("the servers' links ({} busy inwards, {} outwards)", percent(p.incoming),
                         percent(p.outgoing));
    }
    case Limit::kOwnLinks:
      return fmt::format("the workers' own links ({} of their time)",
                         percent(p.part(TimeCategory::kOwnLink)));
    case Limit::kUpdates:
      return fmt::format("the servers' updates ({} busy)", percent(p.updating));
    case Limit::kOthers:
      return fmt::format("slower workers, which the others wait for {} of their time",
                         percent(p.part(TimeCategory::kOthers)));
    case Limit::kCores:
      return fmt::format("the machine's {:g} cores ({} busy)", c.machine->cores, percent(p.cores));
    case Limit::kFailures:
      return fmt::format("failures ({} of them, {} rounds lost)", p.failures, p.lost_rounds);
    case Limit::kComputing:
      break;
  }
  const auto computing = percent(p.part(TimeCategory::kCompute));
  if (c.machine && p.cores > kFull)
    return fmt::format("computing ({} of the workers' time), which takes all {:g} cores", computing,
                       c.machine->cores);
  return fmt::format("computing ({} of the workers' time)", computing);
}

}  // namespace

Bottleneck find_bottleneck(const Cluster& cluster, const std::string& strategy, const Prediction& prediction,
                           std::uint64_t pushes) {
  Bottleneck best;
  std::optional<double> now;
  for (const auto limit : {Limit::kServerLinks, Limit::kOwnLinks, Limit::kUpdates, Limit::kOthers,
                           Limit::kCores, Limit::kFailures}) {
    const auto without = freed(cluster, limit, prediction);
    if (!without) continue;
    if (!now) now = speed(cluster, strategy, pushes);
    const double gain = *now > 0 ? speed(*without, strategy, pushes) / *now : 1;
    if (gain >= kHelps && gain > best.gain) best = {limit, gain, ""};
  }
  best.sentence = description(best.limit, cluster, prediction);
  if (best.limit != Limit::kComputing)
    best.sentence += fmt::format("; without that limit {:.2g} times the samples/s", best.gain);
  return best;
}

std::optional<std::string> relief(const Cluster& cluster, const std::string& strategy, Limit limit,
                                  std::uint64_t pushes) {
  auto c = cluster;
  std::string what;
  switch (limit) {
    case Limit::kServerLinks:
    case Limit::kUpdates:
      if (c.machine) return {};  // more servers would share the same memory
      c.servers *= 2;
      what = fmt::format("{} servers", c.servers);
      break;
    case Limit::kOwnLinks:
      if (c.bandwidth == Cluster::kUnlimited) return {};
      c.server_bandwidth = 2 * c.server_bandwidth.value_or(c.bandwidth);
      c.bandwidth *= 2;
      what = fmt::format("links of {}", rate_text(c.bandwidth));
      break;
    case Limit::kCores:
      c.machine->cores *= 2;
      what = fmt::format("{:g} cores", c.machine->cores);
      break;
    case Limit::kComputing:
      if (c.machine) return {};  // more workers would share the same cores
      c.workers *= 2;
      what = fmt::format("{} workers", c.workers);
      break;
    case Limit::kOthers:
    case Limit::kFailures:
      return {};
  }
  const double before = speed(cluster, strategy, pushes), after = speed(c, strategy, pushes);
  if (before <= 0) return {};
  return fmt::format("with {} {:.2f} times", what, after / before);
}

const char* name(Limit limit) {
  switch (limit) {
    case Limit::kComputing:
      return "computing";
    case Limit::kServerLinks:
      return "servers' links";
    case Limit::kOwnLinks:
      return "own links";
    case Limit::kUpdates:
      return "updates";
    case Limit::kOthers:
      return "slow workers";
    case Limit::kCores:
      return "cores";
    case Limit::kFailures:
      return "failures";
  }
  return "";
}

}  // namespace capstan::simulate
