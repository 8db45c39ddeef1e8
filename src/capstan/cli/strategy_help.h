#pragma once

#include "capstan/cli/command.h"

namespace capstan::cli {

// For `--strategy help`: prints all strategies and returns true.
bool asks_for_strategies(const Arguments& arguments);

}  // namespace capstan::cli
