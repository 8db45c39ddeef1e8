#include "capstan/training/local_trainer.h"

#include <algorithm>

#include "capstan/base/check.h"
#include "capstan/kernels/steps.h"
#include "capstan/kernels/weighted_sum.h"
#include "capstan/models/arena.h"

namespace capstan::training {

LocalTrainer::LocalTrainer(Task& task, const FlatLayout& layout, std::span<const float> weights,
                           const optimizer::Spec& optimizers, const optimizer::Schedule& schedule)
    : task_(task),
      weights_(layout.size()),
      gradients_(layout.size()),
      schedule_(schedule),
      optimizers_(optimizers, {}),
      groups_(layout, {.optimizers = optimizers.globs(), .phases = task.phases()}),
      phases_(task, layout),
      shard_(weights_, optimizers_, false, store::shard_groups(layout, groups_, {0, layout.size()})),
      updates_(layout, groups_),
      arena_(task.parameters(), layout, gradients_) {
  move_to(weights, 1);
  models::bind_parameters(task.parameters(), layout, weights_.data());
}

LocalTrainer::~LocalTrainer() {
  models::unbind_parameters(task_.parameters());
}

StepResult LocalTrainer::step(const Batch& batch, std::uint64_t number, std::vector<PhaseTimes>* times) {
  StepResult result;
  for (std::uint32_t phase = 0; phase < groups_.phases(); ++phase) {
    const auto before = result.seconds;
    phases_.enter(phase);
    result = compute_gradients(task_, phase, arena_, batch);
    auto& measured = result.times;
    measured.optimizer_begin = SteadyClock::now();
    update(number, phase);
    measured.optimizer_end = SteadyClock::now();
    result.seconds += before + seconds(measured.optimizer_end - measured.optimizer_begin);
    if (times) times->push_back(measured);
  }
  return result;
}

// The optimizer counts the steps of its state, the schedule those of the worker.
void LocalTrainer::update(std::uint64_t number, std::uint32_t phase) {
  updates_.apply(shard_, phase, Version{steps_}, {gradients_.data(), 1.0f, schedule_.factor(number)},
                 arena_.rows());
  if (phase + 1 == groups_.phases()) ++steps_;
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
