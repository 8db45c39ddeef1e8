#pragma once

#include <string>
#include <vector>

#include "capstan/cli/command.h"
#include "capstan/lab/registry.h"

namespace capstan::cli {

// `capstan bench ps`, or the whole of a program with plug-ins (capstan/lab/run.h).
struct LabProgram {
  std::string name = "capstan";            // before messages
  std::string usage = "capstan bench ps";  // of the help
  std::vector<std::string> command;        // that starts it: the program's path, and words before its flags
};

int run_bench_ps(const Arguments& arguments, const lab::Registry& registry, const LabProgram& program);

// The main function of a program with plug-ins of its own.
int run_lab_program(int argc, char** argv, const lab::Registry& own);

}  // namespace capstan::cli
