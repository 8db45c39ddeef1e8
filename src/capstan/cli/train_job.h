#pragma once

#include "capstan/cli/progress.h"
#include "capstan/cli/signals.h"
#include "capstan/cli/train_result.h"
#include "capstan/cluster/token.h"
#include "capstan/data/dataset.h"
#include "capstan/metrics/run_folder.h"
#include "capstan/models/model.h"
#include "capstan/training/evaluate.h"

namespace capstan::cli {

// Everything a run of either kind has.
struct TrainContext {
  config::JobConfig config;
  data::Dataset dataset;
  std::unique_ptr<models::Model> model;  // for evaluation
  FlatLayout layout;
  metrics::RunFolder folder;
  Interrupts& interrupts;
  cluster::Token token;
  bool starts_workers = true;  // else they are started by hand, and awaited
};

// Trains with servers and, unless they come by hand, workers as processes of this machine. Throws Failure
// where all of either are lost. `interrupted` is set where the user ended it; the result is then what was
// reached.
TrainResult train_with_servers(TrainContext& context, bool& interrupted);

// Trains in this process.
TrainResult train_alone(TrainContext& context, bool& interrupted);

// Updates of one pass over the data, and of the whole run, while no worker is lost.
struct StepPlan {
  std::uint64_t per_epoch = 0;
  std::uint64_t total = 0;
};
StepPlan plan_steps(const config::JobConfig& config, std::uint64_t samples);

// Tells the user, and the run's record, how good the weights of a version are.
void record_evaluation(metrics::RunFolder& folder, Progress& progress, Version version, const StepPlan& plan,
                       const training::Evaluation& test);

}  // namespace capstan::cli
