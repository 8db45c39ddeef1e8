#include "capstan/lab/options.h"

#include <algorithm>

namespace capstan::lab {

std::vector<config::Setting> settings(Choices& choices) {
  constexpr auto kGroup = "Options of PyTorch's benchmark with one valid value, or for CUDA devices";
  auto out = settings(choices.plan);
  const auto fixed = [&](std::string_view name, std::string& value, std::string_view only) {
    out.push_back({.name = name,
                   .value = &value,
                   .limits = config::Words{only},
                   .help = "Only",
                   .group = kGroup,
                   .hint = "NAME"});
  };
  fixed("preprocess-data", choices.preprocess_data, "preprocess_dummy_data");
  fixed("create-ddp-model", choices.create_ddp_model, "basic_ddp_model");
  fixed("hook-state", choices.hook_state, "BasicHookState");
  fixed("iteration-step", choices.iteration_step, "basic_iteration_step");
  fixed("create-optimizer", choices.create_optimizer, "sgd_optimizer");
  const config::WholeRange counts{0, kMostProcesses};
  const std::initializer_list<config::Setting> others = {
      {.name = "filestore",
       .value = &choices.filestore,
       .help = "Not needed",
       .group = kGroup,
       .hint = "FILE"},
      {.name = "ncudatrainer",
       .value = &choices.cuda_trainers,
       .limits = counts,
       .help = "Trainers on CUDA devices; not supported yet",
       .group = kGroup},
      {.name = "ncudaserver",
       .value = &choices.cuda_servers,
       .limits = counts,
       .help = "Servers on CUDA devices; not supported yet",
       .group = kGroup},
      {.name = "use-cuda-rpc",
       .value = &choices.use_cuda_rpc,
       .help = "Send from device to device; not supported yet",
       .group = kGroup},
      {.name = "cuda-seed",
       .value = &choices.cuda_seed,
       .help = "Of CUDA devices; not used",
       .group = kGroup},
  };
  out.insert(out.end(), others);
  return out;
}

const config::Setting* find_setting(const std::vector<config::Setting>& settings, std::string name) {
  std::ranges::replace(name, '_', '-');
  const auto found = std::ranges::find_if(
      settings, [&](const config::Setting& s) { return s.name == name || s.also == "--" + name; });
  return found == settings.end() ? nullptr : &*found;
}

}  // namespace capstan::lab
