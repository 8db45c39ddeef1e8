#pragma once

#include <string>
#include <vector>

#include "capstan/lab/plan.h"

// The options of one configuration, as the user gives them.
namespace capstan::lab {

// An option that was given.
struct GivenOption {
  std::string name;  // of its setting
  std::string text;
  std::string place;  // "scaling.toml:3"; empty: the command line
};
// Later layers override earlier ones.
using Layers = std::vector<std::vector<GivenOption>>;

// All options. Beside the plan's, those of PyTorch's benchmark that have one valid value or none here.
struct Choices {
  Plan plan;
  std::uint32_t cuda_trainers = 0, cuda_servers = 0;
  bool use_cuda_rpc = false;
  std::uint64_t cuda_seed = 0;
  std::string filestore;
  std::string preprocess_data = "preprocess_dummy_data", create_ddp_model = "basic_ddp_model",
              hook_state = "BasicHookState", iteration_step = "basic_iteration_step",
              create_optimizer = "sgd_optimizer";
};
// Bound to `choices`, which must outlive them.
std::vector<config::Setting> settings(Choices& choices);
// The option of this name or of its other name, with dashes or underscores; null if there is none.
const config::Setting* find_setting(const std::vector<config::Setting>& settings, std::string name);

}  // namespace capstan::lab
