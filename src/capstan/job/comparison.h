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
  std::vector<std::string> train_flags;  // of `capstan train`, for every run
  std::optional<double> target_accuracy;
  std::filesystem::path folder;  // of the runs; empty: runs/<time>-compare-<network>-<dataset>
};

// What became of one `capstan train --json`.
struct TrainingOutcome {
  int code = 0;
  std::string output;  // its last line: one JSON object
  std::string end;     // "exit code 3", for where it has none
};
// Runs one with these flags; `quiet`: nothing of what it says is shown. The user's requests to end are passed
// on to it.
using RunTraining = std::function<TrainingOutcome(const std::vector<std::string>& flags, bool quiet)>;

// As a process of this machine.
RunTraining training_process(StopToken& stop);

struct ComparisonResult {
  report::Comparison comparison;
  std::filesystem::path folder, page;
  bool interrupted = false;

  std::string problem() const;  // the first thing that did not end well; empty where all did
  std::string json() const;     // of `compare --json`, one line
  std::string text() const;     // for people
};

// Trains the same job under each strategy, one after the other, and writes a page that shows them side by
// side. Throws UserError for wrong flags, before anything has run.
ComparisonResult compare(const ComparisonOptions& options, const RunTraining& run, Environment environment);

// "sync,async"; where one of them has groups, and so commas of its own: "sync;default=sync,fc*=async". Throws
// UserError for a name that is empty or there twice.
std::vector<std::string> split_strategies(const std::string& text);

}  // namespace capstan::job
