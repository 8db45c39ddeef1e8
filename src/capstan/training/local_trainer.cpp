#include "capstan/training/local_trainer.h"

#include <algorithm>

#include "capstan/base/check.h"
#include "capstan/kernels/steps.h"
#include "capstan/kernels/weighted_sum.h"
#include "capstan/models/arena.h"

namespace capstan::training {

LocalTrainer::LocalTrainer(Task& task, const FlatLayout& layout, std::span<const float> weights,
                           const optimizer::Options& options, const optimizer::Schedule& schedule)
    : task_(task),
      weights_(layout.size()),
      gradients_(layout.size()),
      schedule_(schedule),
      optimizer_(options, {}),
      shard_(weights_, optimizer_),
      arena_(task.parameters(), layout, gradients_) {
  move_to(weights, 1);
  models::bind_parameters(task.parameters(), layout, weights_.data());
}

LocalTrainer::~LocalTrainer() {
  models::unbind_parameters(task_.parameters());
}

// The optimizer counts the steps of its state, the schedule those of the worker.
StepResult LocalTrainer::step(const Batch& batch, std::uint64_t number) {
  auto result = compute_gradients(task_, 0, arena_, batch);
  const optimizer::Contribution whole[] = {{gradients_.data(), 1.0f}};
  const UpdateRule rule{.rate = schedule_.factor(number)};
  const auto begin = SteadyClock::now();
  for (std::size_t chunk = 0; chunk < shard_.chunks(); ++chunk)
    shard_.apply_chunk(chunk, Version{steps_}, whole, {}, rule);
  ++steps_;
  result.seconds += seconds(SteadyClock::now() - begin);
  return result;
}

void LocalTrainer::write_push(strategy::LocalSteps::Payload payload, std::span<const float> given,
                              std::span<float> out) const {
  const std::span<const float> mine = weights_;
  CAPSTAN_CHECK(given.size() == mine.size() && out.size() == mine.size(), "all arrays have the model's size");
  if (payload == strategy::LocalSteps::Payload::kWeights) {
    std::ranges::copy(mine, out.begin());
    return;
  }
  const kernels::Term difference[] = {{given.data(), 1}, {mine.data(), -1}};
  kernels::weighted_sum(difference, 0, out);
}

void LocalTrainer::move_to(std::span<const float> weights, double part) {
  const std::span<float> mine = weights_;
  CAPSTAN_CHECK(weights.size() == mine.size(), "the weights have the model's size");
  if (part == 1) {
    std::ranges::copy(weights, mine.begin());
    return;
  }
  const kernels::Term pull[] = {{weights.data(), static_cast<float>(part)}};
  kernels::weighted_sum(pull, 0, gradients_);  // as scratch: unused between two steps
  kernels::blend_step(static_cast<float>(1 - part), gradients_, mine);
}

}  // namespace capstan::training
