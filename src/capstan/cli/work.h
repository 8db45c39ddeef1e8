#pragma once

#include "capstan/job/work.h"

namespace capstan::cli {

// Runs one worker of a job to its end, with this process's signals, and prints what it did. Returns the exit
// code. The token comes from the configuration's file or the environment.
int run_worker(job::WorkOptions options, bool json);

}  // namespace capstan::cli
