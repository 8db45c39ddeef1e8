#pragma once

#include <functional>
#include <memory>

#include "capstan/simulate/cluster.h"
#include "capstan/simulate/prediction.h"
#include "capstan/strategy/strategy.h"

namespace capstan::simulate {

// Called now and then with the part that is done, 0 to 1.
using Watch = std::function<void(double part)>;

// Plays a job on a fake clock: every decision is made by the engine and the strategy that servers use, every
// shard cut as they cut it; only the time that things take is made up, as `cluster` says. The same cluster
// and strategy give the same prediction. docs/simulation.md says what is modelled. Thread-safe.
Prediction simulate(const Cluster& cluster, std::unique_ptr<strategy::Strategy> strategy,
                    const Watch& watch = {});

}  // namespace capstan::simulate
