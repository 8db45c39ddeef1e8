#pragma once

#include <span>
#include <string_view>

namespace capstan::config {

// A task other than a network of the zoo on a labelled dataset. workloads/registry.h makes it; this table has
// what programs without libtorch need to know.
struct TaskEntry {
  std::string_view name;
  std::string_view network;   // its own; there is no choice
  std::string_view summary;   // one line for help
  std::string_view defaults;  // of fields that are not given, as lines of a configuration file
};

std::span<const TaskEntry> tasks();

// Throws UserError for an unknown name, with the nearest known one.
const TaskEntry& find_task(std::string_view name);

}  // namespace capstan::config
