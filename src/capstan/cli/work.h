#pragma once

#include "capstan/job/work.h"

namespace capstan::cli {

// Runs one worker to its end, handles signals, and prints the result. Returns the exit code. The token comes
// from the configuration's token file or the environment.
int run_worker(job::WorkOptions options, bool json);

}  // namespace capstan::cli
