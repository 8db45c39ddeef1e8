#pragma once

#include <memory>

#include "capstan/lab/configuration.h"
#include "capstan/lab/trainer.h"

namespace capstan::lab {

// A trainer that sends nothing: each replica takes SGD steps of its own. The time of its steps is that of
// computation alone.
std::unique_ptr<Trainer> make_local_trainer(const Configuration& values, const TrainerContext& context);

}  // namespace capstan::lab
