// The program for commands that training does not need; `capstan` executes it.

#include "capstan/cli/commands.h"

int main(int argc, char** argv) {
  using namespace capstan::cli;
  return run_one_of({{"compare", run_compare},
                     {"simulate", run_simulate},
                     {"models", run_models},
                     {"bench", run_bench},
                     {"inspect", run_inspect},
                     {"report", run_report},
                     {"doctor", run_doctor}},
                    argc, argv);
}
