#pragma once

#include <cstdint>
#include <string>

#include "capstan/cluster/token.h"
#include "capstan/config/job_config.h"
#include "capstan/job/environment.h"
#include "capstan/job/estimate.h"
#include "capstan/job/prepared_job.h"
#include "capstan/job/result.h"
#include "capstan/job/single_process.h"

namespace capstan::job {

struct TrainOptions {
  cluster::Token token;
  bool starts_workers = true;  // else they are started by hand, and awaited
  RunOptions run;
  std::string versions;  // JSON of what it runs on, for the run's folder
};

// Checks a configuration, loads what it names and finds what it resumes from. Throws UserError where
// something is wrong or does not fit; nothing is written.
PreparedJob prepare(config::JobConfig config, Environment environment);

DryRun dry_run(const PreparedJob& job);

// Trains a prepared job to its end and leaves a run folder. Throws UserError where the folder cannot be made,
// Failure where the job fails.
TrainResult train(PreparedJob job, const TrainOptions& options, Environment environment);

}  // namespace capstan::job
