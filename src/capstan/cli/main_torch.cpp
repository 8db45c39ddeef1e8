// The program for commands that need libtorch; `capstan` executes it.

#include "capstan/cli/commands.h"

int main(int argc, char** argv) {
  using namespace capstan::cli;
  return run_one_of({{"train", run_train},
                     {"work", run_work},
                     {"eval", run_eval},
                     {"describe", run_describe}},  // for doctor
                    argc, argv);
}
