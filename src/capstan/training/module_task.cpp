#include "capstan/torch/module_task.h"

#include <utility>

#include <fmt/format.h>

#include "capstan/training/aliases.h"
#include "capstan/training/task_errors.h"
#include "capstan/user_error.h"

namespace capstan {
ModuleTask::ModuleTask(std::shared_ptr<torch::nn::Module> module) : module_(std::move(module)) {
  if (!module_) throw UserError("ModuleTask needs a module: the pointer is null");
  const auto is_new = [&](const auto& item) {
    return item.value().defined() && !training::add_alias(parameters_, item.key(), item.value()) &&
           !training::add_alias(buffers_, item.key(), item.value());
  };
  for (const auto& item : module_->named_parameters()) {
    if (!is_new(item)) continue;
    if (item.value().requires_grad())
      training::check_parameter(parameters_.emplace_back(NamedTensor{item.key(), item.value()}));
    else
      buffers_.push_back({item.key(), item.value()});
  }
  for (const auto& item : module_->named_buffers())
    if (is_new(item)) buffers_.push_back({item.key(), item.value()});
  if (parameters_.empty())
    throw UserError(
        fmt::format("module {} has no parameter that requires gradients: register one with "
                    "register_parameter() or register_module()",
                    module_->name()));
}

}  // namespace capstan
