#include "capstan/training/step.h"

#include "capstan/base/time.h"

namespace capstan::training {

StepResult compute_gradients(models::Model& model, models::GradientArena& arena, const Batch& batch) {
  const auto start = SteadyClock::now();
  StepResult result;
  result.samples = static_cast<std::uint64_t>(batch.size());
  arena.begin();
  if (result.samples > 0) {
    const auto loss = model.loss(batch.images, batch.labels);
    loss.backward();
    result.loss = loss.item<float>();
  }
  arena.finish();
  result.seconds = seconds(SteadyClock::now() - start);
  return result;
}

}  // namespace capstan::training
