#pragma once

#include <functional>
#include <memory>

#include "capstan/simulate/cluster.h"
#include "capstan/simulate/prediction.h"
#include "capstan/strategy/strategy.h"

namespace capstan::simulate {

// Called regularly with the completed fraction, 0 to 1.
using Watch = std::function<void(double part)>;

// Simulates a job on a fake clock. Decisions and shards are those of the real engine, strategy and placement;
// only durations come from `cluster`. The same cluster and strategy give the same prediction.
// docs/simulation.md describes the model. Thread-safe.
Prediction simulate(const Cluster& cluster, std::unique_ptr<strategy::Strategy> strategy,
                    const Watch& watch = {});

}  // namespace capstan::simulate
