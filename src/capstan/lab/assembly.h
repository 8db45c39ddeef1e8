#pragma once

#include <memory>
#include <string>
#include <vector>

#include "capstan/lab/plan.h"
#include "capstan/lab/registry.h"

// What a plan's names stand for: an entry of its configuration file; without a file or an entry, a plug-in
// with no values to configure, or one of Capstan's own networks, tasks, datasets or strategies. All functions
// throw UserError that names what is wrong.
namespace capstan::lab {

// The model with its data. Seeds libtorch's generator, so that all trainers begin with the same weights.
std::unique_ptr<Task> make_task(const Plan& plan, const Registry& registry);
std::unique_ptr<Trainer> make_trainer(const Plan& plan, const Registry& registry,
                                      const TrainerContext& context);
// Not for strategies.
std::unique_ptr<Server> make_server(const Plan& plan, const Registry& registry);

// The trainer is a strategy of `capstan train`.
bool is_strategy(const Plan& plan);
// The trainers need a group for allreduce.
bool uses_group(const Plan& plan);

}  // namespace capstan::lab
