// The commands that need libtorch. `capstan` becomes this program when one of them is asked for.

#include "capstan/cli/commands.h"
#include "capstan/cli/output.h"

namespace capstan::cli {
namespace {

constexpr Command kCommands[] = {
    {"train", "", run_train},
    {"work", "", run_work},
    {"eval", "", run_eval},
    {"describe", "", run_describe},  // for doctor
};

}  // namespace
}  // namespace capstan::cli

int main(int argc, char** argv) {
  using namespace capstan::cli;
  for (const auto& command : kCommands) {
    if (argc > 1 && std::string_view(argv[1]) == command.name)
      return run_command(command, Arguments(argv + 2, argv + argc));
  }
  say("capstan-torch is a part of capstan: run capstan --help");
  return capstan::kWrongUsage;
}
