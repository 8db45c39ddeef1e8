#pragma once

#include <string>

#include "capstan/job/environment.h"
#include "capstan/job/prepared_job.h"
#include "capstan/job/result.h"
#include "capstan/job/run_record.h"
#include "capstan/job/single_process.h"

namespace capstan::job {

// Trains by allreduce, without servers: this process is rank 0 and starts the other ranks. Throws Failure if
// one of them is lost.
TrainResult train_allreduce(PreparedJob& job, Environment environment, RunRecord& record,
                            const RunOptions& options);

// Runs rank `rank` of the group that rank 0 has opened at `address`, until training ends.
void follow_allreduce(PreparedJob& job, const std::string& address, std::uint32_t rank);

}  // namespace capstan::job
