#pragma once

#include <cstdint>
#include <vector>

#include "capstan/base/ids.h"
#include "capstan/checkpoint/manifest.h"
#include "capstan/config/job_config.h"

namespace capstan::job {

// The number of updates at the end of each epoch of a run, if no worker is lost. A value.
struct StepBudget {
  Version start;                    // version at the start: 0, or the checkpoint's
  std::uint64_t per_epoch = 0;      // updates per whole epoch
  std::uint64_t total = 0;          // updates at the end of the run
  std::uint64_t scheduled = 0;      // steps of the learning-rate schedule: `total` or, with local steps, a
                                    // worker's own steps, earlier data segments included
  std::uint64_t segment_steps = 0;  // of one worker, from the start to the end of the run
  std::uint64_t samples = 0;        // per whole epoch
  struct Epoch {
    std::uint64_t end = 0;  // updates at its end
    double begun = 0;       // share of it that was done before the start
  };
  std::vector<Epoch> epochs;
  double begun_later = 0;  // passes of epochs after these, made before the start: --epochs was larger

  // Passes over the training set at a version: 2.5 is the middle of the third epoch.
  double epoch_of(Version version) const;
};

// `from` is the checkpoint that the run resumes from, or null.
StepBudget budget_steps(const config::JobConfig& config, std::uint64_t samples,
                        const checkpoint::Manifest* from);

}  // namespace capstan::job
