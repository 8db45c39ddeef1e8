#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "capstan/lab/configuration.h"
#include "capstan/lab/trainer.h"

namespace capstan::lab {

// How DdpTrainer averages a bucket:
//   allreduce_hook    by Gloo among the trainers
//   hybrid_hook       the same, but the backward pass waits for sparse ones
//   rpc_hook          by the servers
//   sparse_rpc_hook   dense ones by Gloo, sparse ones by the servers
struct DdpHook {
  std::string_view name;
  bool uses_servers, uses_group;
};
const std::vector<DdpHook>& ddp_hooks();
// Throws UserError for an unknown name.
const DdpHook& find_hook(std::string_view name);

// The trainer of the context's hook. Its values, all of them optional: bucket_cap_mb and first_bucket_mb, in
// MiB; and those of older files. Throws UserError for wrong ones.
std::unique_ptr<Trainer> make_ddp_trainer(const Configuration& values, const TrainerContext& context);

}  // namespace capstan::lab
