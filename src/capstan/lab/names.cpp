#include "capstan/lab/names.h"

#include <algorithm>

#include "capstan/strategy/strategy.h"

namespace capstan::lab {
namespace {

constexpr TrainerAlias kAliases[] = {{"DdpNcclTrainer", "allreduce_hook"},
                                     {"DdpSparseRpcTrainer", "sparse_rpc_hook"},
                                     {"DdpSparseDenseRpcTrainer", "rpc_hook"}};

bool has_no_servers(std::string_view strategy) {
  return strategy == "single" || strategy == "allreduce";
}

}  // namespace

bool is_strategy(std::string_view name) {
  if (has_no_servers(name) || name.find('=') != std::string_view::npos) return true;
  const auto first = name.substr(0, name.find_first_of(":;"));
  return std::ranges::any_of(strategy::table(), [&](const auto& entry) { return entry.name == first; });
}

bool has_servers(std::string_view strategy) {
  return !has_no_servers(strategy);
}

const TrainerAlias* find_trainer_alias(std::string_view class_name) {
  const auto found = std::ranges::find(kAliases, class_name, &TrainerAlias::name);
  return found == std::end(kAliases) ? nullptr : found;
}

Entry plugin_entry(const Plan& plan, Kind kind) {
  const auto& [name, file] = [&]() -> std::pair<const std::string&, const std::filesystem::path&> {
    switch (kind) {
      case Kind::kData:
        return {plan.data, plan.data_config};
      case Kind::kModel:
        return {plan.model, plan.model_config};
      case Kind::kTrainer:
        return {plan.trainer, plan.trainer_config};
      default:
        return {plan.server, plan.server_config};
    }
  }();
  if (!file.empty()) {
    const ConfigurationFile entries(file, kind);
    if (std::ranges::count(entries.names(), name) > 0) return entries.entry(name);
  }
  return {name, Configuration(name, {})};
}

}  // namespace capstan::lab
