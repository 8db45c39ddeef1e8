#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capstan/layout.h"
#include "capstan/models/gradient_arena.h"
#include "capstan/optimizer/spec.h"
#include "capstan/store/dense_shard.h"
#include "capstan/store/zeroed_array.h"
#include "capstan/strategy/strategy.h"
#include "capstan/training/group_updates.h"
#include "capstan/training/phases.h"
#include "capstan/training/step.h"

namespace capstan::training {

// A worker's own weights and the optimizers of its local steps. The task's parameters are views of these
// weights during the trainer's lifetime. Use from one thread.
class LocalTrainer {
 public:
  // Begins with the servers' weights. The learning rate follows `schedule` over the worker's steps. Throws
  // UserError for an optimizer or a phase without tensors.
  LocalTrainer(Task& task, const FlatLayout& layout, std::span<const float> weights,
               const optimizer::Spec& optimizers, const optimizer::Schedule& schedule);
  ~LocalTrainer();

  // The worker's step `number`, from 0: each phase updates its own groups. The loss is that of the last
  // phase. `times`, if not null, gets those of each phase.
  StepResult step(const Batch& batch, std::uint64_t number, std::vector<PhaseTimes>* times = nullptr);

  // Writes the worker's push; `given` are the weights that it pulled last.
  void write_push(strategy::LocalSteps::Payload payload, std::span<const float> given,
                  std::span<float> out) const;
  // Moves the worker's weights towards the pulled ones: x -= part·(x - weights).
  void move_to(std::span<const float> weights, double part);

  std::span<const float> weights() const { return weights_; }

 private:
  void update(std::uint64_t number, std::uint32_t phase);

  Task& task_;
  store::ZeroedArray weights_, gradients_;
  const optimizer::Schedule schedule_;
  const optimizer::OptimizerSet optimizers_;
  const ParameterGroups groups_;
  const Phases phases_;
  store::DenseShard shard_;
  const GroupUpdates updates_;
  models::GradientArena arena_;
  std::uint64_t steps_ = 0;  // that are complete, of this optimizer state
};

}  // namespace capstan::training
