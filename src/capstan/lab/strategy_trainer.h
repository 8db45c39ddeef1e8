#pragma once

#include <memory>
#include <string>

#include "capstan/lab/trainer.h"

namespace capstan::lab {

// Trains as a worker of `strategy` ("sync", "ssp:3" …) on the servers of the context, or without servers:
// "single", which is one trainer, and "allreduce" in the context's group. The batches are those of other
// trainers: of the training split in its order, dealt round-robin. Measures
//   data_metric,data_wait · forward_metric,forward_pass · optimizer_metric,optimizer_step (of own weights)
//   backward_metric,backward              with the wait for servers or other trainers
//   communication_metric,gradient_wait    that wait, in steps that have one
//   hook_future_metric,push_pull          each push until its answer
//   batch_level_metric,batch_all          the step without the wait for data
// Throws UserError for an unknown strategy, or one that does not fit the context.
std::unique_ptr<Trainer> make_strategy_trainer(const std::string& strategy, const TrainerContext& context);

}  // namespace capstan::lab
