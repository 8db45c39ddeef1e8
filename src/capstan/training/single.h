#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "capstan/base/data_segment.h"
#include "capstan/layout.h"
#include "capstan/optimizer/spec.h"
#include "capstan/store/dense_shard.h"
#include "capstan/store/zeroed_array.h"
#include "capstan/torch/task.h"
#include "capstan/training/step_times.h"

namespace capstan::training {

// The state at which an earlier run stopped.
struct SingleStart {
  Version version;
  std::vector<DataSegment> segments;
  std::vector<float> buffers;
  // Fills the weights and the optimizer's state.
  std::function<void(std::span<float> weights, std::vector<std::span<float>> state)> load;
};

// One of several processes that share every step and sum their gradients.
struct GroupMember {
  std::uint32_t rank = 0;
  std::uint32_t workers = 1;
  std::function<void(std::span<float>)> sum;  // over all processes, in place; empty for a single process
  double slow_down = 1;                       // factor by which every step of this process takes longer
};

struct SingleOptions {
  std::uint64_t batch_size = 64;
  std::uint64_t epochs = 15;
  std::uint64_t max_steps = 0;  // 0: no limit
  std::uint64_t seed = 1;       // of the order of the samples
  optimizer::Spec optimizer;
  optimizer::Schedule schedule;
  unsigned loader_threads = 1;  // that prepare batches
  std::optional<SingleStart> start = {};
  GroupMember group = {};
  std::optional<SplitInfo> split = {};  // instead of the task's: the first samples of its training split
};

// The run after an update; unchanged during the callback.
struct SingleState {
  Version version;
  std::uint64_t steps = 0;    // since its start
  std::uint64_t samples = 0;  // since its start
  const store::DenseShard& shard;
};

// One process's part of a step.
struct StepPart {
  float samples = 0;
  float loss = 0;
  float compute_seconds = 0;
  float wait_seconds = 0;  // for the rest of the group, in the previous step
  float data_seconds = 0;
};

struct SingleStep {
  std::uint64_t step = 0;           // applied updates, this one included
  std::uint64_t epoch = 0;          // from 0
  double loss = 0;                  // before the update
  std::uint64_t samples = 0;        // of the whole group
  double seconds = 0;               // the whole step
  std::span<const StepPart> parts;  // by rank
};

// All may be empty. Called on the training thread.
struct SingleCallbacks {
  std::function<void(const SingleStep&)> on_step;
  StepObserver on_times;
  // After each whole epoch; the task is bound to the weights.
  std::function<void(std::uint64_t epoch, std::span<const float> weights)> on_epoch;
  std::function<void(const SingleState&)> on_update;
  std::function<void(const SingleState&)> on_end;
  const std::atomic<bool>* stop = nullptr;  // checked before each step
};

struct SingleResult {
  FlatLayout layout;
  store::ZeroedArray weights;  // in the arena's order; the task's parameters are views of it
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  double seconds = 0;
  bool stopped = false;
};

// Trains in this process without a server: the reference for speed-up and correctness. With a group, the
// processes sum their gradients, and each has its own optimizer. The samples, their order and the updates are
// those of a sync job with the same global batch. The same options and number of threads give bitwise
// identical results.
SingleResult train_single(const SingleOptions& options, Task& task, const SingleCallbacks& callbacks);

}  // namespace capstan::training
