#pragma once

#include "capstan/lab/launcher.h"
#include "capstan/report/lab.h"

namespace capstan::lab {

// One run, from what its processes have reported. The time is that from the first trainer's begin to the last
// one's end. Metrics are those of each rank, and those of all trainers and of all servers together, whose
// values are concatenated. A step's parts are means of the trainers' series; those of a series that is absent
// are 0.
report::LabRun run_result(const RunReports& reports);

}  // namespace capstan::lab
