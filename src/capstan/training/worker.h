#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "capstan/client/worker_client.h"
#include "capstan/status.h"
#include "capstan/torch/task.h"
#include "capstan/training/step_times.h"

namespace capstan::training {

struct WorkerOptions {
  std::uint64_t batch_size = 32;
  std::uint64_t epochs = 15;
  std::uint64_t seed = 1;
  const std::atomic<bool>* stop = nullptr;  // checked before each step
  std::function<void()> on_start = {};      // the first weights have arrived
  unsigned loader_threads = 1;              // that prepare batches
  double slow_down = 1;                     // factor by which every step takes longer
  StepObserver on_step = {};
  std::optional<SplitInfo> split = {};  // instead of the task's: the first samples of its training split
};

struct WorkerResult {
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  double loss = 0;  // of the last step
  double compute_seconds = 0;
  double communication_seconds = 0;
  double data_seconds = 0;  // waiting for batches
  std::uint64_t bytes_pushed = 0, bytes_pulled = 0;
};

// A worker's training loop on its part of the data: gradient or local steps, push, pull, until its epochs are
// done, the servers end the job or `stop` is set; then it leaves the job. At the end the task's parameters
// own a copy of its last weights. A failure means a lost server.
Result<WorkerResult> run_worker(client::WorkerClient& client, Task& task, const FlatLayout& layout,
                                const WorkerOptions& options);

}  // namespace capstan::training
