#pragma once

#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/cli/progress.h"
#include "capstan/cli/signals.h"
#include "capstan/cluster/token.h"
#include "capstan/data/dataset.h"
#include "capstan/job/result.h"
#include "capstan/job/run_record.h"
#include "capstan/job/step_budget.h"
#include "capstan/models/model.h"
#include "capstan/training/evaluate.h"
#include "capstan/training/single.h"

namespace capstan::cli {

// Everything a run of either kind has.
struct TrainContext {
  config::JobConfig config;
  data::Dataset dataset;
  std::unique_ptr<models::Model> model;  // for evaluation
  FlatLayout layout;
  FlatLayout buffer_layout;
  job::RunRecord folder;
  job::StepBudget plan;
  std::optional<checkpoint::Found> resume;  // what the run goes on from
  Interrupts& interrupts;
  cluster::Token token;
  bool starts_workers = true;  // else they are started by hand, and awaited
  bool evaluator = false;      // one runs beside the job
};

// Trains with servers and, unless they come by hand, workers as processes of this machine. Throws Failure
// where all of either are lost. Where the user ended it, the result is what was reached.
job::TrainResult train_with_servers(TrainContext& context);

// Trains in this process; with a team, as one of several that split every step among them.
job::TrainResult train_alone(TrainContext& context, const training::Team& team = {});

// What a program of ours said before it ended, without its own name.
std::string without_name(const std::string& words);

// Tells the user, and the run's record, how good the weights of a version are, and when it was reached.
void record_evaluation(job::RunRecord& folder, Progress& progress, Version version,
                       const job::StepBudget& plan, const training::Evaluation& test, double seconds);

}  // namespace capstan::cli
