// The program for commands that need libtorch; `capstan` executes it.

#include "capstan/cli/commands.h"

int main(int argc, char** argv) {
  using namespace capstan::cli;
  const auto& program = capstan::job::capstan_program();
  return run_one_of({of(program, "train", run_train),
                     of(program, "work", run_work),
                     of(program, "eval", run_eval),
                     {"describe", run_describe}},  // for doctor
                    argc, argv);
}
