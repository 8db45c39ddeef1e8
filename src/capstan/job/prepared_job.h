#pragma once

#include <optional>

#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/config/job_config.h"
#include "capstan/job/step_budget.h"
#include "capstan/job/task_factory.h"

namespace capstan::job {

// A job that is ready to start: its configuration is valid, its data are loaded, and the checkpoint to resume
// from matches.
struct PreparedJob {
  config::JobConfig config;
  PreparedTask task;
  std::optional<checkpoint::Found> resume;
  StepBudget budget;
  bool same_run = false;  // it continues in the folder of the run that it resumes
};

}  // namespace capstan::job
