// The program `capstan`: the list of commands and the server. It executes other programs for the other
// commands.

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "capstan/cli/commands.h"
#include "capstan/cli/signals.h"
#include "capstan/launch/child.h"
#include "capstan/launch/compute_environment.h"
#include "capstan/version.h"

namespace capstan::cli {
namespace {

// A command, of one word or two, and the program that runs it, by execv; null for this program. The server is
// part of this program, which is linked without large libraries, so that it starts fast and needs little
// memory. capstan-torch is linked with libtorch, capstan-data with libcurl; capstan-tools has the commands
// that training does not need.
struct Entry {
  const char* name;
  const char* summary;
  const char* program;
};

constexpr Entry kCommands[] = {
    {"train", "run a whole job on this machine: servers, workers, run folder", "capstan-torch"},
    {"serve", "run one parameter server", nullptr},
    {"work", "run one worker", "capstan-torch"},
    {"eval", "watch a run and evaluate each checkpoint on the test set", "capstan-torch"},
    {"compare", "train one job under several strategies and compare them", "capstan-tools"},
    {"simulate", "predict a job's performance on another cluster", "capstan-tools"},
    {"data", "list, get and verify datasets", "capstan-data"},
    {"models", "list the networks that can be trained, and their tensors", "capstan-tools"},
    {"bench ps", "measure ways to train: any data, model, trainer and server", "capstan-torch"},
    {"bench", "benchmark push and pull (wire), or image loading (data)", "capstan-tools"},
    {"report", "show and compare results of bench ps: tables, CSV, a page of plots", "capstan-tools"},
    {"inspect", "show a checkpoint, or export it as a PyTorch state dict", "capstan-tools"},
    {"doctor", "check this machine, and say how to fix what is missing", "capstan-tools"},
};

int become(const std::string& name, char** argv) {
  if (name == "capstan-torch") (void)launch::prepare_compute_environment();
  keep_hangup_ignored();
  const auto program = launch::program(name);
  ::execv(program.c_str(), argv);
  say(fmt::format("capstan: cannot start {}: {}; the installation is incomplete", program,
                  std::strerror(errno)));
  return kFailed;
}

int print_version(const Arguments&) {
  fmt::print("capstan {}\n", CAPSTAN_VERSION);
  return kSuccess;
}

int print_help(const Arguments&) {
  fmt::print(
      "Trains neural networks with a parameter server, and measures what it does.\n\n"
      "Usage: capstan COMMAND [FLAGS]      capstan COMMAND --help\n\n");
  for (const auto& command : kCommands) fmt::print("  {:<10} {}\n", command.name, command.summary);
  fmt::print("\nStart with: capstan train\n");
  return kSuccess;
}

int run(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word == "--version") return run_command({"version", print_version}, {});
  if (word == "--help" || word == "-h" || word == "help") return run_command({"help", print_help}, {});
  if (word.empty()) {
    (void)print_help({});
    return kWrongUsage;
  }
  const auto two_words = argc > 2 ? word + " " + argv[2] : word;
  std::vector<std::string_view> names;
  for (const auto& command : kCommands) {
    names.emplace_back(command.name);
    if (word != command.name && two_words != command.name) continue;
    if (command.program) return become(command.program, argv);
    return run_command(of(job::capstan_program(), command.name, run_serve), Arguments(argv + 2, argv + argc));
  }
  return unknown_command(word, names, "capstan");
}

}  // namespace
}  // namespace capstan::cli

int main(int argc, char** argv) {
  capstan::cli::open_standard_files();
  return capstan::cli::run(argc, argv);
}
