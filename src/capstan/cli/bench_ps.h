#pragma once

#include <string>
#include <vector>

#include "capstan/cli/command.h"
#include "capstan/lab/registry.h"

namespace capstan::cli {

// The program that runs `bench ps`, or that is nothing but that.
struct LabProgram {
  std::string name;                  // in help and before messages
  std::vector<std::string> command;  // words after its name: {"bench", "ps"}; none for a user's program
};

// `capstan bench ps` with these plug-ins. It starts this executable as trainers and servers, with `command`
// and hidden flags. Returns the exit code; throws UserError.
int run_lab(const Arguments& arguments, const lab::Registry& registry, const LabProgram& program);

// `arguments` begin with "ps".
int run_bench_ps(const Arguments& arguments);

// The main function of a program with plug-ins of its own (capstan/lab/run.h).
int run_lab_program(int argc, char** argv, const lab::Registry& own);

}  // namespace capstan::cli
