#pragma once

#include "capstan/cli/train_job.h"

namespace capstan::cli {

// Trains by allreduce: this process is rank 0 and starts the others; no server has a part in a step. Throws
// Failure where one of them is lost.
job::TrainResult train_in_team(TrainContext& context);

// One of the others.
int follow_in_team(const config::JobConfig& config, const std::string& address, std::uint32_t rank,
                   const data::Dataset& dataset, const job::StepBudget& plan,
                   const std::optional<checkpoint::Found>& resume);

}  // namespace capstan::cli
