#pragma once

#include <string>
#include <string_view>

#include "capstan/lab/configuration_file.h"
#include "capstan/lab/plan.h"

// What the names in a plan stand for.
namespace capstan::lab {

// A strategy of `capstan train`: "sync", "ssp:3", "sync;500=async", "default=sync,fc*=async", also "single"
// and "allreduce". Says nothing about its options.
bool is_strategy(std::string_view name);
// Of a strategy.
bool has_servers(std::string_view strategy);

inline constexpr const char* kDdpTrainer = "DdpTrainer";
inline constexpr const char* kLocalTrainer = "LocalTrainer";  // sends nothing

// An older class of trainers: DdpTrainer with a hook.
struct TrainerAlias {
  std::string_view name, hook;
};
const TrainerAlias* find_trainer_alias(std::string_view class_name);

// Where the plan's plug-in of this kind comes from: the entry with its name in the configuration file, or, if
// there is none, the class with its name, without values. Throws UserError if the file cannot be read.
Entry plugin_entry(const Plan& plan, Kind kind);

}  // namespace capstan::lab
