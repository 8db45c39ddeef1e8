#pragma once

#include <string>
#include <vector>

#include "capstan/report/scaling.h"
#include "capstan/simulate/sweep.h"

// What `capstan simulate` prints and draws.
namespace capstan::cli {

struct SimulatedJob {
  simulate::Cluster cluster;
  std::string model;
  std::string slow_workers;  // as the user spells them
  std::string calibrated;    // what was taken from a run, in one line
};

struct SimulatedResult {
  simulate::Prediction prediction;
  double efficiency = 0;
  simulate::Bottleneck bottleneck;
  std::string relief;  // empty where nothing was tried
};

// At most 80 columns wide, as is everything for people.
std::string simulation_text(const SimulatedJob& job, const std::vector<SimulatedResult>& results);
std::string simulation_json(const SimulatedJob& job, const std::vector<SimulatedResult>& results);

std::string sweep_text(const simulate::SweepRange& range, const std::vector<simulate::Curve>& curves);
std::string sweep_json(const SimulatedJob& job, const simulate::SweepRange& range,
                       const std::vector<simulate::Curve>& curves, const std::string& page);
report::Scaling sweep_page(const SimulatedJob& job, const simulate::SweepRange& range,
                           const std::vector<simulate::Curve>& curves);

}  // namespace capstan::cli
