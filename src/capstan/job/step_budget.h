#pragma once

#include <cstdint>
#include <vector>

#include "capstan/base/ids.h"
#include "capstan/checkpoint/manifest.h"
#include "capstan/config/job_config.h"

namespace capstan::job {

// Which update a run has reached at the end of each epoch, as long as no worker is lost. A value.
struct StepBudget {
  Version start;                    // what the run begins with: 0, or a checkpoint's version
  std::uint64_t per_epoch = 0;      // updates of a whole epoch
  std::uint64_t total = 0;          // updates at its end
  std::uint64_t worker_steps = 0;   // of one worker at the end of its last epoch, earlier segments included
  std::uint64_t segment_steps = 0;  // of one worker, from the start to the end
  std::uint64_t samples = 0;        // of a whole epoch
  struct Epoch {
    std::uint64_t end = 0;  // updates after which it is over
    double begun = 0;       // how much of it was done before the start
  };
  std::vector<Epoch> epochs;

  // Passes over the training set at a version, 2.5 for the middle of the third.
  double epoch_of(Version version) const;
};

// `from` is the checkpoint that the run resumes from, or null.
StepBudget budget_steps(const config::JobConfig& config, std::uint64_t samples,
                        const checkpoint::Manifest* from);

}  // namespace capstan::job
