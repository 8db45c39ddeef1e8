#pragma once

#include <span>
#include <string>
#include <vector>

#include "capstan/base/failure.h"

namespace capstan::cli {

using Arguments = std::vector<std::string>;

// `run` gets the arguments behind the command's name.
struct Command {
  const char* name;
  const char* summary;
  int (*run)(const Arguments& arguments);
};

// Runs a command: prints what it throws as one line (with --json as an object, too) and returns the code.
int run_command(const Command& command, const Arguments& arguments);

}  // namespace capstan::cli
