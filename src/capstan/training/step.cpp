#include "capstan/training/step.h"

#include <thread>

#include <ATen/Context.h>

#include "capstan/base/random.h"
#include "capstan/base/time.h"
#include "capstan/training/task_errors.h"

namespace capstan::training {
namespace {

constexpr std::uint64_t kDomain = 0x64726f706f7574;  // separates this random stream from others

// Returns the loss.
float forward_and_backward(Task& task, std::size_t phase, const Batch& batch, TimePoint& forward_end) {
  try {
    const auto loss = task.loss(phase, batch);
    check_loss(loss);
    forward_end = SteadyClock::now();
    loss.backward();
    return loss.item<float>();
  } catch (...) {
    rethrow_from_task("loss()");
  }
}

}  // namespace

void seed_step(std::uint64_t seed, WorkerId worker, Version version) {
  at::manual_seed(derive_seed({kDomain, seed, worker.value, version.value}));
}

StepResult compute_gradients(Task& task, std::size_t phase, models::GradientArena& arena,
                             const Batch& batch) {
  StepResult result;
  auto& times = result.times;
  times.forward_begin = times.forward_end = SteadyClock::now();
  result.samples = batch.samples;
  arena.begin();
  if (result.samples > 0) result.loss = forward_and_backward(task, phase, batch, times.forward_end);
  arena.finish();
  times.backward_end = SteadyClock::now();
  result.seconds = seconds(times.backward_end - times.forward_begin);
  return result;
}

StepResult slowed(StepResult step, double times) {
  if (times > 1) {
    std::this_thread::sleep_for(from_seconds((times - 1) * step.seconds));
    step.seconds *= times;
    step.times.backward_end = SteadyClock::now();
  }
  return step;
}

}  // namespace capstan::training
