// `capstan data`, which `capstan` becomes when it is asked for.

#include "capstan/cli/commands.h"
#include "capstan/cli/output.h"

int main(int argc, char** argv) {
  using namespace capstan::cli;
  constexpr Command kData = {"data", "", run_data};
  if (argc > 1 && std::string_view(argv[1]) == kData.name)
    return run_command(kData, Arguments(argv + 2, argv + argc));
  say("capstan-data is a part of capstan: run capstan data --help");
  return capstan::kWrongUsage;
}
