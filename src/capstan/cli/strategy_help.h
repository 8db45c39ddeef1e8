#pragma once

#include "capstan/cli/command.h"

namespace capstan::cli {

// Does the user ask `--strategy help`? Then prints every strategy in a line.
bool asks_for_strategies(const Arguments& arguments);

}  // namespace capstan::cli
