// The program for commands that need libtorch; `capstan` executes it.

#include <iostream>

#include "capstan/cli/bench_ps.h"
#include "capstan/cli/commands.h"

int main(int argc, char** argv) {
  using namespace capstan::cli;
  std::cout.rdbuf(std::cerr.rdbuf());  // TorchScript modules may print; standard output is for results
  const auto& program = capstan::job::capstan_program();
  return run_one_of({of(program, "train", run_train),
                     of(program, "work", run_work),
                     of(program, "eval", run_eval),
                     {"bench", run_bench_ps},
                     {"describe", run_describe}},  // for doctor
                    argc, argv);
}
