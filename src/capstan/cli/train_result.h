#pragma once

#include <cstdint>
#include <string>

#include "capstan/checkpoint/manifest.h"
#include "capstan/config/job_config.h"
#include "capstan/training/evaluate.h"
#include "capstan/wire/messages.h"

namespace capstan::cli {

// What a training run came to; the keys of `train --json` in the same order.
struct TrainResult {
  config::JobConfig config;
  std::string transport = "none";
  std::uint64_t steps = 0;
  double epochs = 0;  // passes over the training set that were applied
  double seconds = 0;
  double samples_per_second = 0;
  double train_loss = 0;
  training::Evaluation test;
  std::uint64_t bytes_pushed = 0, bytes_pulled = 0;
  double compute_seconds = 0, communication_seconds = 0;  // of a worker, in the mean
  std::uint64_t lost_workers = 0;
  std::uint64_t dropped_pushes = 0;
  double staleness_mean = 0;
  std::uint64_t staleness_max = 0;
  std::vector<wire::WorkerRow> rows;  // by rank; none without servers
  double data_seconds = 0;            // that a worker waited for its samples, in the mean
  std::uint64_t resumed_from = 0;     // version of the checkpoint it began with; 0 for none
  std::uint64_t checkpoint = 0;       // version of the newest checkpoint; 0 for none
  std::string run_dir;
  bool interrupted = false;  // before it had made all its updates

  // Takes over what the servers counted.
  void take(const wire::StatusReport& status, std::uint64_t training_samples);
  // Adds what was trained before the checkpoint.
  void resumed(const checkpoint::Manifest& from, std::uint64_t training_samples);
  std::string json() const;
  std::string summary() const;
};

}  // namespace capstan::cli
