#pragma once

#include <functional>
#include <string>
#include <vector>

#include "capstan/simulate/bottleneck.h"
#include "capstan/simulate/cluster.h"
#include "capstan/simulate/prediction.h"

namespace capstan::simulate {

// What a strategy is predicted to do, and what limits it. A value.
struct Forecast {
  Prediction prediction;
  double efficiency = 0;
  Bottleneck bottleneck;
  std::string relief;  // empty if nothing was tried
};

// "sync,async,ssp:3" taken apart and checked for so many workers. Throws UserError that names the strategy.
std::vector<std::string> split_strategies(const std::string& list, std::uint32_t workers);

// One forecast for each strategy. `watch` takes lines about the progress.
std::vector<Forecast> forecast(const Cluster& cluster, const std::vector<std::string>& strategies,
                               const std::function<void(const std::string& line)>& watch);

}  // namespace capstan::simulate
