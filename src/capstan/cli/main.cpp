// The front: the list of commands, a server, and the way to the programs that have the others.

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

// A command's program, which this one becomes. A server is this program: it is linked with nothing that it
// does not need, so it starts at once and takes little memory. capstan-torch is linked with libtorch,
// capstan-data with libcurl, and capstan-tools has what a job needs neither to run nor to be built.
struct Entry {
  const char* name;
  const char* summary;
  const char* program;
};

constexpr Entry kCommands[] = {
    {"train", "run a whole job on this machine: servers, workers, run folder", "capstan-torch"},
    {"serve", "one parameter server, by hand", nullptr},
    {"work", "one worker, by hand", "capstan-torch"},
    {"eval", "watch a run and evaluate each checkpoint on the test set", "capstan-torch"},
    {"compare", "one job under several strategies, side by side", "capstan-tools"},
    {"simulate", "predict a job on a cluster that is not here", "capstan-tools"},
    {"data", "list, get and verify datasets", "capstan-data"},
    {"models", "the networks that can be trained, and their tensors", "capstan-tools"},
    {"bench", "wire: push and pull of a model; data: decoding and augmenting", "capstan-tools"},
    {"inspect", "what is in a checkpoint; export it as a PyTorch state dict", "capstan-tools"},
    {"doctor", "what this machine offers, what is missing, and how to fix it", "capstan-tools"},
};

int become(const std::string& name, char** argv) {
  if (name == "capstan-torch") launch::prepare_compute_environment();
  keep_hangup_ignored();
  const auto program = launch::program(name);
  ::execv(program.c_str(), argv);
  say(fmt::format("capstan: {}: {}: build it with ./capstan build", program, std::strerror(errno)));
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
    if (command.program) return become(command.program, argv);
    return run_command({command.name, run_serve}, Arguments(argv + 2, argv + argc));
  }
  return unknown_command(word);
}

}  // namespace
}  // namespace capstan::cli

int main(int argc, char** argv) {
  return capstan::cli::run(argc, argv);
}
