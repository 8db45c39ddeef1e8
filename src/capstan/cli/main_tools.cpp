// Commands that a job needs neither to run nor to be built: they measure, predict, compare and show.

#include "capstan/cli/commands.h"

int main(int argc, char** argv) {
  using namespace capstan::cli;
  return run_one_of({{"compare", run_compare},
                     {"simulate", run_simulate},
                     {"models", run_models},
                     {"bench", run_bench},
                     {"inspect", run_inspect},
                     {"doctor", run_doctor}},
                    argc, argv);
}
