#include "capstan/simulate/forecast.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "capstan/simulate/simulation.h"
#include "capstan/simulate/sweep.h"
#include "capstan/user_error.h"

namespace capstan::simulate {
namespace {

constexpr std::uint64_t kTryPushes = 50'000;  // of a try that looks for the bottleneck

}  // namespace

std::vector<std::string> split_strategies(const std::string& list, std::uint32_t workers) {
  if (list.find('=') != std::string::npos)
    throw UserError(fmt::format(
        "--strategy {}: groups of tensors are not simulated: name each group's strategy by itself, "
        "such as sync,async",
        list));
  std::vector<std::string> out;
  std::istringstream names(list + ",");
  for (std::string name; std::getline(names, name, ',');) {
    if (name.empty()) throw UserError(fmt::format("--strategy {}: a name is empty", list));
    if (std::ranges::find(out, name) != out.end())
      throw UserError(fmt::format("--strategy {}: {} is named twice", list, name));
    if (name == "single" || name == "allreduce")
      throw UserError(fmt::format("{} has no servers to simulate: see sync{}", name,
                                  name == "single" ? " with --workers 1" : ""));
    (void)strategy::parse(name, workers);
    out.push_back(name);
  }
  return out;
}

std::vector<Forecast> forecast(const Cluster& cluster, const std::vector<std::string>& strategies,
                               const std::function<void(const std::string& line)>& watch) {
  std::vector<Forecast> out;
  for (const auto& strategy : strategies) {
    const auto progress = [&](double part) {
      watch(fmt::format("{}: {:.0f} % of {} rounds of each worker", strategy, 100 * part, cluster.rounds));
    };
    Forecast f;
    f.prediction = simulate(cluster, strategy::parse(strategy, cluster.workers), progress);
    f.efficiency = efficiency(f.prediction, speed_alone(cluster, strategy));
    watch(fmt::format("{}: what limits it?", strategy));
    f.bottleneck = find_bottleneck(cluster, strategy, f.prediction, kTryPushes);
    f.relief = relief(cluster, strategy, f.bottleneck.limit, kTryPushes).value_or("");
    out.push_back(std::move(f));
  }
  return out;
}

}  // namespace capstan::simulate
