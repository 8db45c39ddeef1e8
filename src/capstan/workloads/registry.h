#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "capstan/data/dataset.h"
#include "capstan/torch/task.h"

namespace capstan::workloads {

struct TaskOptions {
  data::DatasetOptions dataset;
  std::uint64_t init_seed = 1;
};

// The tasks that `--task` names. To add one, add a line in registry.cpp and in config/tasks.cpp.
struct Entry {
  std::string_view name;
  // Seeds libtorch's generator. Throws UserError for data that is unreadable or does not fit.
  std::unique_ptr<Task> (*make)(const TaskOptions& options);
};
std::span<const Entry> table();

}  // namespace capstan::workloads
