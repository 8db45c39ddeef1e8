// The commands that need libtorch. `capstan` becomes this program when one of them is asked for.

#include <fmt/format.h>

#include "capstan/cli/commands.h"

namespace capstan::cli {
namespace {

constexpr Command kCommands[] = {
    {"train", "", run_train}, {"work", "", run_work}, {"describe", "", run_describe},  // for doctor
};

}  // namespace
}  // namespace capstan::cli

int main(int argc, char** argv) {
  using namespace capstan::cli;
  for (const auto& command : kCommands) {
    if (argc > 1 && std::string_view(argv[1]) == command.name)
      return run_command(command, Arguments(argv + 2, argv + argc));
  }
  fmt::print(stderr, "capstan-torch is a part of capstan: run capstan --help\n");
  return capstan::kWrongUsage;
}
