#pragma once

#include "capstan/lab/registry.h"
#include "capstan/torch/run.h"

namespace capstan::detail {

// The entry of the shared library: capstan::run() with what only a program's own objects can know.
int start(int argc, char** argv, const TaskFactory& make, const RunOptions& options, bool hangup_was_ignored);

// The same for capstan::lab::run().
int start_lab(int argc, char** argv, const lab::Registry& registry, bool hangup_was_ignored);

}  // namespace capstan::detail
