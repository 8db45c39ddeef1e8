#pragma once

#include "capstan/cluster/token.h"
#include "capstan/job/environment.h"
#include "capstan/job/prepared_job.h"
#include "capstan/job/result.h"
#include "capstan/job/run_record.h"
#include "capstan/job/single_process.h"

namespace capstan::job {

// Trains with servers and, if `starts_workers`, workers as processes on this machine. Throws Failure if a
// server or all workers are lost. After a stop request, returns the result so far.
TrainResult train_with_servers(PreparedJob& job, Environment environment, RunRecord& record,
                               const RunOptions& options, const cluster::Token& token, bool starts_workers);

}  // namespace capstan::job
