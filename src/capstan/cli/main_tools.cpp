// What looks at jobs from outside: measures, predicts, compares, shows. `capstan` becomes this program when
// one of its commands is asked for.

#include "capstan/cli/commands.h"
#include "capstan/cli/output.h"

namespace capstan::cli {
namespace {

constexpr Command kCommands[] = {
    {"compare", "", run_compare}, {"simulate", "", run_simulate}, {"models", "", run_models},
    {"bench", "", run_bench},     {"inspect", "", run_inspect},   {"doctor", "", run_doctor},
};

}  // namespace
}  // namespace capstan::cli

int main(int argc, char** argv) {
  using namespace capstan::cli;
  for (const auto& command : kCommands) {
    if (argc > 1 && std::string_view(argv[1]) == command.name)
      return run_command(command, Arguments(argv + 2, argv + argc));
  }
  say("capstan-tools is a part of capstan: run capstan --help");
  return capstan::kWrongUsage;
}
