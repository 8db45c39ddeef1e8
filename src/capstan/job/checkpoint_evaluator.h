#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "capstan/base/failure.h"
#include "capstan/base/json.h"
#include "capstan/base/unique_fd.h"
#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/job/environment.h"
#include "capstan/layout.h"
#include "capstan/metrics/evaluation.h"

namespace capstan::job {

// One line of a run's evaluations.jsonl.
struct CheckpointEvaluation {
  std::uint64_t step = 0;
  double epoch = 0;
  metrics::Evaluation test;
  double seconds = 0;      // duration of the evaluation
  std::string checkpoint;  // name of its folder
  std::string id;          // distinguishes checkpoints of the same step

  Json json() const;
  // None for a line of another kind, or without the first metric. Other metrics that are missing are NaN.
  static std::optional<CheckpointEvaluation> parse(const std::string& line,
                                                   const std::vector<Metric>& metrics);
};

// Evaluates the checkpoints of one run as they appear, writes a line of evaluations.jsonl for each, and links
// the best. Use from one thread.
class CheckpointEvaluator {
 public:
  struct Options {
    std::filesystem::path run;
    std::string network;  // name, for messages
    FlatLayout layout;    // of the parameters
    FlatLayout buffer_layout;
    std::vector<Metric> metrics;  // the best checkpoint is the best by the first
    std::uint64_t every = 0;      // only steps that are multiples of it; 0: all
    double poll_interval = 1;     // seconds between checks on file systems without change notification
    bool once = false;            // evaluate the existing checkpoints, then end
  };
  // Evaluates flat weights and buffers; empty buffers leave the model's own unchanged.
  using Evaluate =
      std::function<metrics::Evaluation(std::span<const float> weights, std::span<const float> buffers)>;

  // Throws UserError if another process evaluates this run, or the run folder is not writable.
  CheckpointEvaluator(Options options, Evaluate evaluate, Environment environment);

  // Returns when the run is finished and every checkpoint is evaluated, or on a stop request. Checkpoints
  // that cannot be read are reported and left out.
  void run();

  const std::optional<CheckpointEvaluation>& best() const { return best_; }
  // The result: one line, or none if there is no evaluation.
  std::string text() const;
  Json json() const;
  ExitCode exit_code() const;

 private:
  void watch();
  [[noreturn]] void fail_without_checkpoint() const;
  std::string problem() const;  // if a checkpoint could not be read
  void lock_record();
  void read_record();
  bool evaluate_new();
  void evaluate(const checkpoint::Entry& entry, const std::string& id);
  void note(const CheckpointEvaluation& line);
  std::optional<CheckpointEvaluation> find_best() const;

  const Options options_;
  const Evaluate evaluate_;
  Environment environment_;
  std::vector<float> weights_;
  std::set<std::string> evaluated_;  // identities of checkpoints
  std::vector<CheckpointEvaluation> results_;
  std::optional<CheckpointEvaluation> best_;
  std::uint64_t unreadable_ = 0;
  bool interrupted_ = false;
  UniqueFd lock_;
  std::ofstream record_;
};

}  // namespace capstan::job
