#include <algorithm>

#include <fmt/format.h>

#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/signals.h"
#include "capstan/cli/terminal_progress.h"
#include "capstan/job/comparison.h"
#include "capstan/launch/compute_environment.h"
#include "capstan/user_error.h"

namespace capstan::cli {
namespace {

struct Flags {
  std::string strategies = "single,sync,async";
  std::optional<double> target;
  std::filesystem::path train_dir;
  bool json = false;
};

// Flags of `train` that compare does not take, and what to use instead.
struct Refused {
  std::string_view flag, instead;
};
constexpr Refused kRefused[] = {
    {"strategy", "use --strategies"},
    {"num-aggregate", "use batch:K in --strategies"},
    {"staleness-damping", "use async:damped in --strategies"},
    {"max-steps", "samples per update differ between strategies; use --epochs"},
    {"dry-run", "use capstan train --dry-run"},
    {"rank", "all processes run on this machine"},
    {"world-size", "all processes run on this machine"},
};

void check(const Arguments& for_train) {
  for (const auto& [flag, instead] : kRefused) {
    const auto word = fmt::format("--{}", flag);
    if (std::ranges::any_of(for_train, [&](const auto& w) { return w == word || w.starts_with(word + "="); }))
      throw UserError(fmt::format("compare does not take {}: {}", word, instead));
  }
}

}  // namespace

int run_compare(const Arguments& arguments) {
  Flags flags;
  CommandLine line("compare",
                   "Trains the same job under several strategies, one after the other, and compares\n"
                   "them in a table and in an HTML page with plots (one file, works offline).\n\n"
                   "  capstan compare --strategies single,sync,async --workers 2\n"
                   "  capstan compare --strategies sync,batch:2 --workers 4 --target 0.97\n\n"
                   "All other flags are those of capstan train and apply to every run. All runs make\n"
                   "the same number of epochs with the same seed. --batch-size is per worker: with\n"
                   "sync, an update merges one batch of each worker; with async or single (one\n"
                   "process with all cores), it has one batch. Speed-up is samples/s relative to\n"
                   "single. The times of single and allreduce exclude evaluation; the other\n"
                   "strategies evaluate while they train.\n");
  line.flag("strategies", &flags.strategies,
            "Strategies, separated by commas, or by semicolons if one has groups (capstan train "
            "--strategy help lists them)");
  line.flag("target", &flags.target,
            "Also report the time to this value of the first metric, such as a test accuracy of 0.97")
      .also = "--target-accuracy";
  line.flag("train-dir", &flags.train_dir,
            "Folder of the runs (default: runs/<time>-compare-<network>-<dataset>)");
  line.flag("json", &flags.json, "Print the result as one JSON object on standard output");
  Arguments for_train;
  if (!line.parse(arguments, &for_train)) return kSuccess;
  check(for_train);

  launch::prepare_compute_environment();
  Interrupts interrupts;
  TerminalProgress events({});
  const auto result =
      job::compare({job::split_strategies(flags.strategies), for_train, flags.target, flags.train_dir},
                   job::training_process(interrupts), {events, interrupts});
  fmt::print("{}", flags.json ? result.json() + "\n" : result.text());
  return result.interrupted ? kInterrupted : result.problem().empty() ? kSuccess : kFailed;
}

}  // namespace capstan::cli
