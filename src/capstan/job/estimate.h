#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capstan/config/job_config.h"
#include "capstan/job/step_budget.h"
#include "capstan/layout.h"
#include "capstan/metric.h"
#include "capstan/step_phase.h"

namespace capstan::job {

// Names of the arrays of optimizer state, kept by the servers or, without servers, by the workers.
std::vector<std::string> state_names(const config::JobConfig& config);

// Memory and traffic of a job, in bytes. A value.
struct Estimate {
  std::uint64_t servers = 0;  // weights and optimizer state, over all servers
  std::uint64_t worker = 0;   // gradient, and a worker's own copies of weights and optimizer state
  std::uint64_t update = 0;   // pushed and pulled for one update, with all phases of its steps
};

// Of a model whose steps have these phases.
Estimate estimate(const config::JobConfig& config, const FlatLayout& layout,
                  const std::vector<StepPhase>& phases = {});

// The output of `train --dry-run`: a job and its estimated cost. A value.
struct DryRun {
  config::JobConfig config;
  std::uint64_t parameters = 0;
  std::uint64_t training_samples = 0, test_samples = 0;
  StepBudget budget;
  Estimate bytes;
  std::vector<Metric> metrics;  // of the task

  std::string json() const;
  std::string text() const;
};

}  // namespace capstan::job
