#pragma once

#include <string>
#include <vector>

#include "capstan/report/scaling.h"
#include "capstan/simulate/forecast.h"
#include "capstan/simulate/scenario.h"
#include "capstan/simulate/sweep.h"

// The output of `capstan simulate`.
namespace capstan::report {

using simulate::Scenario;

// At most 80 columns wide.
std::string simulation_text(const Scenario& scenario, const std::vector<simulate::Forecast>& results);
std::string simulation_json(const Scenario& scenario, const std::vector<simulate::Forecast>& results);

std::string sweep_text(const simulate::SweepRange& range, const std::vector<simulate::Curve>& curves);
std::string sweep_json(const Scenario& scenario, const simulate::SweepRange& range,
                       const std::vector<simulate::Curve>& curves, const std::string& page);
Scaling sweep_page(const Scenario& scenario, const simulate::SweepRange& range,
                   const std::vector<simulate::Curve>& curves);

}  // namespace capstan::report
