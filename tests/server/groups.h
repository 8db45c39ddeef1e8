#pragma once

#include "capstan/base/parameter_groups.h"
#include "capstan/strategy/strategy_spec.h"

namespace capstan::testing {

// The parameter groups of a model with one tensor for the default and one for each group, named as its glob,
// in each phase.
inline ParameterGroups groups_of(const std::string& strategy, std::uint32_t workers,
                                 std::uint32_t phases = 1) {
  GroupTable table{.strategies = strategy::parse_strategy_spec(strategy, workers).globs()};
  std::vector<TensorShape> tensors;
  for (std::uint32_t p = 0; p < phases; ++p) {
    const auto prefix = phases > 1 ? std::string(1, static_cast<char>('p' + p)) : std::string();
    if (phases > 1) table.phases.push_back({prefix, {prefix + "*"}});
    tensors.push_back({prefix + "other", {3}});
    for (const auto& glob : table.strategies) tensors.push_back({prefix + glob, {3}});
  }
  if (phases > 1) {
    for (auto& glob : table.strategies) glob = "?" + glob;
  }
  return {FlatLayout(std::move(tensors)), table};
}

}  // namespace capstan::testing
