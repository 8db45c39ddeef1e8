#pragma once

#include <optional>

#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/config/job_config.h"
#include "capstan/job/step_budget.h"
#include "capstan/job/task_factory.h"

namespace capstan::job {

// A job that can begin: its configuration is checked, its data are loaded, and what it resumes from fits.
struct PreparedJob {
  config::JobConfig config;
  Task task;
  std::optional<checkpoint::Found> resume;
  StepBudget budget;
  bool same_run = false;  // it goes on in the folder of the run that it resumes
};

}  // namespace capstan::job
