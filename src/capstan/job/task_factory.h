#pragma once

#include <memory>
#include <string>

#include "capstan/checkpoint/aliases.h"
#include "capstan/config/job_config.h"
#include "capstan/job/program.h"
#include "capstan/layout.h"
#include "capstan/torch/task.h"

namespace capstan::job {

// The task of a configuration, with its initial weights, and its layout in flat memory. Not thread-safe.
struct PreparedTask {
  std::unique_ptr<Task> task;
  FlatLayout layout;  // of the parameters
  FlatLayout buffer_layout;
  checkpoint::Aliases aliases;  // of both
  std::string
      dataset;  // how its data is encoded, as JSON (data/encoding.h); empty if the task has no dataset

  std::uint64_t training_samples() const { return task->split(Split::kTrain).samples; }
};

PreparedTask with_layouts(std::unique_ptr<Task> task, std::string dataset = {});

// The program's own task, or Capstan's. Throws UserError for unreadable data, for a network that is unknown
// or does not match the data, and for a task of another program.
PreparedTask make_task(const config::JobConfig& config, const Program& program = capstan_program());
// The same without the training set, encoded as the run in config.train_dir has written.
PreparedTask make_test_task(const config::JobConfig& config, const Program& program = capstan_program());

// Throws UserError if this libtorch does not support the device.
void check_device(const std::string& device);

}  // namespace capstan::job
