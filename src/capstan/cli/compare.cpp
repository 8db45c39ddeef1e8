#include <algorithm>

#include <fmt/format.h>

#include "capstan/base/user_error.h"
#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/output.h"
#include "capstan/cli/signals.h"
#include "capstan/cli/terminal_progress.h"
#include "capstan/job/comparison.h"
#include "capstan/launch/compute_environment.h"

namespace capstan::cli {
namespace {

struct Flags {
  std::string strategies = "single,sync,async";
  std::optional<double> target_accuracy;
  std::filesystem::path train_dir;
  bool json = false;
};

// Flags of `train` that cannot be meant here, and what to do instead.
struct Refused {
  std::string_view flag, instead;
};
constexpr Refused kRefused[] = {
    {"strategy", "name several with --strategies"},
    {"num-aggregate", "name batch:K in --strategies"},
    {"staleness-damping", "name async:damped in --strategies"},
    {"max-steps", "an update is not as many samples in each strategy: use --epochs"},
    {"dry-run", "capstan train has it"},
    {"rank", "all processes are started here"},
    {"world-size", "all processes are started here"},
};

// "--batch_size=3" → "batch-size"; empty for what is no flag.
std::string flag_name(const std::string& word) {
  if (!word.starts_with("--")) return "";
  auto name = word.substr(2, word.find('=') == std::string::npos ? word.npos : word.find('=') - 2);
  std::ranges::replace(name, '_', '-');
  return name;
}

// What is meant for this command, and what `train` is to understand.
struct SplitArguments {
  Arguments own, train;
};
SplitArguments split(const CommandLine& line, const Arguments& arguments) {
  SplitArguments out;
  for (auto word = arguments.begin(); word != arguments.end(); ++word) {
    const auto name = flag_name(*word);
    for (const auto& [flag, instead] : kRefused)
      if (name == flag) throw UserError(fmt::format("compare does not take --{}: {}", flag, instead));
    const auto* option = name.empty() ? nullptr : line.find(name);
    if (!option && *word != "-h" && name != "help") {
      out.train.push_back(*word);
      continue;
    }
    out.own.push_back(*word);
    const bool takes_next = option && !is_switch(*option) && word->find('=') == word->npos;
    if (takes_next && word + 1 != arguments.end()) out.own.push_back(*++word);
  }
  return out;
}

}  // namespace

int run_compare(const Arguments& arguments) {
  Flags flags;
  CommandLine line("compare",
                   "Trains the same job under several strategies, one after the other, and shows\n"
                   "them side by side: a table, and a page with plots that needs no network.\n\n"
                   "  capstan compare --strategies single,sync,async --workers 2\n"
                   "  capstan compare --strategies sync,batch:2 --workers 4 --target-accuracy 0.97\n\n"
                   "Every other flag is one of capstan train, for all runs. Each run passes over the\n"
                   "same samples as often, with the same seed. --batch-size is per worker: an update\n"
                   "of sync is made of one batch of each worker, one of single (a process with all\n"
                   "cores) or async of one batch. Speed-up compares samples/s with those of single.\n"
                   "Its clock, and allreduce's, stand still while they evaluate; the others evaluate\n"
                   "as they train.\n");
  line.add({.name = "strategies",
            .value = &flags.strategies,
            .help = "Any, as capstan train --strategy help lists them; with semicolons between where one has "
                    "groups"});
  line.add({.name = "target-accuracy",
            .value = &flags.target_accuracy,
            .limits = config::NumberRange{0, 1},
            .help = "Also tell when the test accuracy was first that high, 0 to 1"});
  line.add({.name = "train-dir",
            .value = &flags.train_dir,
            .help = "Folder of the runs (default: runs/<time>-compare-<network>-<dataset>)"});
  line.add({.name = "json",
            .value = &flags.json,
            .help = "Print the result as one JSON object on standard output"});
  const auto divided = split(line, arguments);
  if (!line.parse(divided.own)) return kSuccess;

  launch::prepare_compute_environment();
  Interrupts interrupts;
  TerminalProgress events({});
  const auto result = job::compare(
      {job::split_strategies(flags.strategies), divided.train, flags.target_accuracy, flags.train_dir},
      job::training_process(interrupts), {events, interrupts});
  fmt::print("{}", flags.json ? result.json() + "\n" : result.text());
  return result.interrupted ? kInterrupted : result.problem().empty() ? kSuccess : kFailed;
}

}  // namespace capstan::cli
