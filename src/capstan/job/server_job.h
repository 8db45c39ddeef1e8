#pragma once

#include "capstan/cluster/token.h"
#include "capstan/job/environment.h"
#include "capstan/job/prepared_job.h"
#include "capstan/job/result.h"
#include "capstan/job/run_record.h"
#include "capstan/job/single_process.h"

namespace capstan::job {

// Trains with servers and, unless they are started by hand, workers as processes of this machine. Throws
// Failure where all of either are lost. Where the user asks to end, the result is what was reached.
TrainResult train_with_servers(PreparedJob& job, Environment environment, RunRecord& record,
                               const RunOptions& options, const cluster::Token& token, bool starts_workers);

}  // namespace capstan::job
