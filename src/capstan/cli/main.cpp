// The front: everything that needs no libtorch, and the way to what does.

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "capstan/base/spelling.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/output.h"
#include "capstan/cli/signals.h"
#include "capstan/launch/child.h"
#include "capstan/launch/compute_environment.h"

namespace capstan::cli {
namespace {

// Commands without a function live in programs of their own: `data` in capstan-data, which is linked with
// libcurl and what that needs (a server would pay for it in memory and time to start), the others in
// capstan-torch, which is linked with libtorch.
constexpr Command kCommands[] = {
    {"train", "run a whole job on this machine: servers, workers, run folder", nullptr},
    {"serve", "one parameter server, by hand", run_serve},
    {"work", "one worker, by hand", nullptr},
    {"eval", "watch a run and evaluate each checkpoint on the test set", nullptr},
    {"compare", "one job under several strategies, side by side", run_compare},
    {"simulate", "predict a job on a cluster that is not here", run_simulate},
    {"data", "list, get and verify datasets", nullptr},
    {"models", "the networks that can be trained, and their tensors", run_models},
    {"bench", "wire: push and pull of a model; data: decoding and augmenting", run_bench},
    {"inspect", "what is in a checkpoint; export it as a PyTorch state dict", run_inspect},
    {"doctor", "what this machine offers, what is missing, and how to mend it", run_doctor},
};

int become(const std::string& name, char** argv) {
  if (name == "capstan-torch") launch::prepare_compute_environment();
  keep_hangup_ignored();
  const auto program = launch::program(name);
  ::execv(program.c_str(), argv);
  say(fmt::format("capstan: {}: {}: the installation is incomplete", program, std::strerror(errno)));
  return kFailed;
}

void print_help() {
  fmt::print(
      "Trains neural networks with a parameter server, and measures what it does.\n\n"
      "Usage: capstan COMMAND [FLAGS]      capstan COMMAND --help\n\n");
  for (const auto& command : kCommands) fmt::print("  {:<10} {}\n", command.name, command.summary);
  fmt::print("\nStart with: capstan train\n");
}

int unknown_command(const std::string& word) {
  std::vector<std::string_view> names;
  for (const auto& command : kCommands) names.emplace_back(command.name);
  const auto near = nearest(word, names);
  say(fmt::format("capstan: unknown command \"{}\"{} (see capstan --help)", word,
                  near.empty() ? "" : fmt::format(", did you mean {}?", near)));
  return kWrongUsage;
}

int run(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word == "--version") {
    fmt::print("capstan {}\n", CAPSTAN_VERSION);
    return kSuccess;
  }
  if (word == "--help" || word == "-h" || word == "help") {
    print_help();
    return kSuccess;
  }
  if (word.empty()) {
    print_help();
    return kWrongUsage;
  }
  for (const auto& command : kCommands) {
    if (word != command.name) continue;
    if (command.run) return run_command(command, Arguments(argv + 2, argv + argc));
    return become(word == "data" ? "capstan-data" : "capstan-torch", argv);
  }
  return unknown_command(word);
}

}  // namespace
}  // namespace capstan::cli

int main(int argc, char** argv) {
  return capstan::cli::run(argc, argv);
}
