#pragma once

#include "capstan/lab/launcher.h"
#include "capstan/report/lab.h"

namespace capstan::lab {

// One run, from what its processes have reported. The time is that from the first trainer's begin to the last
// one's end. Metrics are those of each rank, and those of all trainers and of all servers together, whose
// values are concatenated. The parts of a step are the sums of the trainers' series divided by all steps.
report::LabRun run_result(const RunReports& reports);

}  // namespace capstan::lab
