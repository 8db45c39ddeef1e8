#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capstan/job/environment.h"
#include "capstan/report/comparison.h"

namespace capstan::job {

struct ComparisonOptions {
  std::vector<std::string> strategies;
  std::vector<std::string> train_flags;  // flags of `capstan train` for every run
  std::optional<double> target;          // of the first metric
  std::filesystem::path folder;          // of the runs; empty: runs/<time>-compare-<network>-<dataset>
};

// The outcome of one `capstan train --json`.
struct TrainingOutcome {
  int code = 0;
  std::string output;  // its last line: one JSON object
  std::string end;     // "exit code 3", for messages if there is no output
};
// Runs one training with these flags; `quiet` discards its standard error. Stop requests are passed on to it.
using RunTraining = std::function<TrainingOutcome(const std::vector<std::string>& flags, bool quiet)>;

// Runs each training as a process on this machine.
RunTraining training_process(StopToken& stop);

struct ComparisonResult {
  report::Comparison comparison;
  std::filesystem::path folder, page;
  bool interrupted = false;

  std::string problem() const;  // of the first run that failed; empty if none did
  std::string json() const;     // of `compare --json`, one line
  std::string text() const;     // for the user
};

// Trains the same job under each strategy, one after the other, and writes a page that compares them. Throws
// UserError for wrong flags before the first run.
ComparisonResult compare(const ComparisonOptions& options, const RunTraining& run, Environment environment);

// "sync,async"; with semicolons if one of them has groups, whose spelling contains commas:
// "sync;default=sync,fc*=async". Throws UserError for an empty name and a duplicate.
std::vector<std::string> split_strategies(const std::string& text);

}  // namespace capstan::job
