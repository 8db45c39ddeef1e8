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
  bool starts_workers = true;  // false: the user starts them, and the job waits for them
  RunOptions run;
};

// Checks a configuration, loads its data and network, and finds the checkpoint to resume from. Throws
// UserError if one of them is invalid or does not match. Writes nothing.
PreparedJob prepare(config::JobConfig config, Environment environment);

DryRun dry_run(const PreparedJob& job);

// Trains a prepared job to its end and writes a run folder. Throws UserError if the folder cannot be created,
// Failure if the job fails.
TrainResult train(PreparedJob job, const TrainOptions& options, Environment environment);

}  // namespace capstan::job
