#include "capstan/cli/own_program.h"

#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "capstan/cli/commands.h"
#include "capstan/cli/signals.h"
#include "capstan/launch/child.h"
#include "capstan/launch/compute_environment.h"
#include "capstan/version.h"

namespace capstan::cli {
namespace {

struct Entry {
  const char* name;
  const char* summary;
  int (*run)(const Arguments&, const job::Program&);
  bool computes;
};

constexpr Entry kCommands[] = {
    {"train", "run a whole job on this machine: servers, workers, run folder", run_train, true},
    {"work", "run one worker", run_work, true},
    {"eval", "watch a run and evaluate each checkpoint on the test set", run_eval, true},
    {"serve", "run one parameter server", run_serve, false},
};

job::Program describe(const TaskFactory& make, const RunOptions& options) {
  const auto path = launch::own_path();
  return {.name = options.name.empty() ? path.filename().string() : options.name,
          .path = path.string(),
          .trainer = path.string(),
          .make_task = make,
          .description = options.description,
          .defaults = options.defaults};
}

int print_help(const job::Program& program) {
  if (!program.description.empty()) fmt::print("{}\n\n", program.description);
  fmt::print("Usage: {0} COMMAND [FLAGS]      {0} COMMAND --help\n\n", program.name);
  for (const auto& command : kCommands) fmt::print("  {:<10} {}\n", command.name, command.summary);
  fmt::print("\nTrains with Capstan {}. Start with: {} train\n", CAPSTAN_VERSION, program.name);
  return kSuccess;
}

// OpenBLAS and OpenMP have read the environment before main(): the program starts again with other variables.
// If that fails, it computes more slowly.
void restart_with_compute_environment(const job::Program& program, char** argv) {
  if (!launch::prepare_compute_environment()) return;
  keep_hangup_ignored();
  ::execv(program.path.c_str(), argv);
}

}  // namespace

int run_own_program(int argc, char** argv, const TaskFactory& make, const RunOptions& options) {
  open_standard_files();
  const auto program = describe(make, options);
  const std::string word = argc > 1 ? argv[1] : "";
  if (word.empty() || word == "--help" || word == "-h" || word == "help") {
    const int code =
        run_command({"help", [&](const Arguments&) { return print_help(program); }}, {}, program.name);
    return word.empty() ? kWrongUsage : code;
  }
  std::vector<std::string_view> names;
  for (const auto& command : kCommands) {
    names.emplace_back(command.name);
    if (word != command.name) continue;
    if (command.computes) restart_with_compute_environment(program, argv);
    return run_command(of(program, command.name, command.run), Arguments(argv + 2, argv + argc),
                       program.name);
  }
  return unknown_command(word, names, program.name);
}

}  // namespace capstan::cli
