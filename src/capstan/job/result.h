#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capstan/checkpoint/manifest.h"
#include "capstan/config/job_config.h"
#include "capstan/metrics/evaluation.h"
#include "capstan/wire/messages.h"

namespace capstan::job {

// The result of a training run. A value.
struct TrainResult {
  // Updates and the corresponding epochs since the start of the first run, before any resume.
  struct Reached {
    std::uint64_t steps = 0;
    double epochs = 0;
    double seconds = 0;  // since the start or the last resume
    double samples_per_second = 0;
  };
  // Seconds per worker, mean over all workers.
  struct WorkerTimes {
    double compute = 0, communication = 0, data = 0;
  };
  struct Pushes {
    std::uint64_t dropped = 0;
    double staleness_mean = 0;
    std::uint64_t staleness_max = 0;
  };

  config::JobConfig config;
  std::string transport = "none";
  Reached reached;
  std::optional<double> train_loss;  // no value if no step was made
  metrics::Evaluation test;
  std::uint64_t bytes_pushed = 0, bytes_pulled = 0;
  WorkerTimes times;
  Pushes pushes;
  std::uint64_t lost_workers = 0;
  std::vector<wire::WorkerRow> rows;  // by rank
  std::uint64_t resumed_from = 0;     // version of the checkpoint; 0 for none
  std::uint64_t checkpoint = 0;       // version of the newest checkpoint; 0 for none
  std::string run_dir;
  bool weights_saved = true;  // as weights.safetensors in the run's folder
  bool interrupted = false;   // before all updates were made
  std::string problem;        // what failed although there is a result; empty if nothing did

  // Copies the servers' counts.
  void take(const wire::StatusReport& status, std::uint64_t training_samples);
  // Adds the training before the checkpoint.
  void resumed(const checkpoint::Manifest& from, std::uint64_t training_samples);

  std::string json() const;     // of `train --json`, one line
  std::string summary() const;  // for the user
};

}  // namespace capstan::job
