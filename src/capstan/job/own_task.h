#pragma once

#include "capstan/job/task_factory.h"

namespace capstan::job {

// The task of a program that has its own. Throws UserError for a configuration of another program, and if the
// program's code fails or makes a task that cannot be trained.
PreparedTask make_own_task(const config::JobConfig& config, const Program& program, bool test_only);

}  // namespace capstan::job
