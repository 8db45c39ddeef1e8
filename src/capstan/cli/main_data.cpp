// The program for `capstan data`; `capstan` executes it.

#include "capstan/cli/commands.h"

int main(int argc, char** argv) {
  using namespace capstan::cli;
  return run_one_of({{"data", run_data}}, argc, argv);
}
