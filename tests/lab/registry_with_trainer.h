#pragma once

#include "capstan/lab/builtin.h"

namespace capstan::lab {

// A trainer that is only a name.
struct IdleTrainer final : Trainer {
  using Trainer::Trainer;
  void train(Task&) override {}
};

inline Registry registry_with(const std::string& trainer) {
  auto registry = builtin();
  registry.trainers[trainer] = [](const Configuration&, const TrainerContext& context) {
    return std::make_unique<IdleTrainer>(context);
  };
  return registry;
}

}  // namespace capstan::lab
