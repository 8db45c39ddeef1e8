#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capstan/base/flat_layout.h"
#include "capstan/models/gradient_arena.h"
#include "capstan/models/model.h"
#include "capstan/optimizer/optimizer.h"
#include "capstan/store/dense_shard.h"
#include "capstan/store/zeroed_array.h"
#include "capstan/strategy/strategy.h"
#include "capstan/training/step.h"

namespace capstan::training {

// A worker's own weights, and the optimizer with which it trains them between two exchanges with the servers.
// The model's parameters are views of these weights while this lives. Use from one thread.
class LocalTrainer {
 public:
  // Begins with the servers' weights. The learning rate follows `schedule` by the steps of the worker.
  LocalTrainer(models::Model& model, const FlatLayout& layout, std::span<const float> weights,
               const optimizer::Options& options, const optimizer::Schedule& schedule);
  ~LocalTrainer();

  // One step of the optimizer; it is the worker's step `number`, from 0.
  StepResult step(const Batch& batch, std::uint64_t number);

  // What the worker hands in.
  void write_push(strategy::LocalSteps::Payload payload, std::span<const float> given,
                  std::span<float> out) const;
  // Goes towards the weights that came for it: all the way, or part of it.
  void move_to(std::span<const float> weights, double part);

  std::span<const float> weights() const { return weights_; }

 private:
  models::Model& model_;
  store::ZeroedArray weights_, gradients_;
  const optimizer::Schedule schedule_;
  const optimizer::Optimizer optimizer_;
  store::DenseShard shard_;
  models::GradientArena arena_;
  std::uint64_t steps_ = 0;  // since the optimizer's state began
};

}  // namespace capstan::training
