#pragma once

#include <atomic>
#include <cstdint>

#include "capstan/base/status.h"
#include "capstan/client/worker_client.h"
#include "capstan/data/image_source.h"
#include "capstan/models/model.h"

namespace capstan::training {

struct WorkerOptions {
  std::uint64_t batch_size = 32;
  std::uint64_t epochs = 15;
  std::uint64_t seed = 1;
  const std::atomic<bool>* stop = nullptr;  // looked at before each step
  std::atomic<bool>* training = nullptr;    // set when the first weights have come
  unsigned loader_threads = 1;              // where images take work
  double slow_down = 1;                     // every step takes so many times as long
};

struct WorkerResult {
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  double loss = 0;  // of the last step
  double compute_seconds = 0;
  double communication_seconds = 0;
  double data_seconds = 0;  // waited for batches
};

// A worker's loop on its part of the data: gradient, push, new weights, or steps of its own in between, as
// the strategy has it, until its epochs are done, the servers say stop or `stop` is set; then says good-bye.
// At the end the model's parameters own what it saw last. A failure is a lost server.
Result<WorkerResult> run_worker(client::WorkerClient& client, models::Model& model, const FlatLayout& layout,
                                const data::ImageSource& train, const WorkerOptions& options);

}  // namespace capstan::training
