#pragma once

#include <memory>

#include "capstan/lab/plan.h"
#include "capstan/lab/registry.h"

// Makes what the names of a resolved plan (resolve.h) stand for: plug-ins with the values of their entries,
// or Capstan's own networks, tasks and datasets. All functions throw UserError that names what is wrong.
namespace capstan::lab {

// The model with its data. Seeds libtorch's generator, so that all trainers begin with the same weights.
std::unique_ptr<Task> make_task(const Plan& plan, const Registry& registry);
// Not for strategies.
std::unique_ptr<Trainer> make_trainer(const Plan& plan, const Registry& registry,
                                      const TrainerContext& context);
// Not for strategies.
std::unique_ptr<Server> make_server(const Plan& plan, const Registry& registry);

// What a trainer of the plan gets, without what connects it to others: servers, token, group, on_step.
TrainerContext trainer_context(const Plan& plan, std::uint32_t rank, MetricsLogger& metrics);

// The trainers need a group for allreduce.
bool uses_group(const Plan& plan);

}  // namespace capstan::lab
