#pragma once

#include "capstan/torch/run.h"

namespace capstan::cli {

// capstan::run() (capstan/torch/run.h).
int run_own_program(int argc, char** argv, const TaskFactory& make, const RunOptions& options);

}  // namespace capstan::cli
