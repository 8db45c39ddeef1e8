#pragma once

#include <cstdint>

#include "capstan/base/ids.h"
#include "capstan/models/gradient_arena.h"
#include "capstan/torch/task.h"
#include "capstan/training/step_times.h"

namespace capstan::training {

struct StepResult {
  double loss = 0;  // mean over the samples
  std::uint64_t samples = 0;
  double seconds = 0;  // forward and backward
  PhaseTimes times = {};
};

// Seeds libtorch's generator for one step, so that random layers (dropout) depend on these arguments only:
// workers draw different numbers, and a resumed run draws the same as an uninterrupted one.
void seed_step(std::uint64_t seed, WorkerId worker, Version version);

// Forward and backward of one phase: leaves the gradient of its loss in the arena. An empty batch is a zero
// gradient. Throws UserError if the task's loss() fails or returns what backward() cannot be called on.
StepResult compute_gradients(Task& task, std::size_t phase, models::GradientArena& arena, const Batch& batch);

// Waits until the step has taken `times` as long.
StepResult slowed(StepResult step, double times);

}  // namespace capstan::training
