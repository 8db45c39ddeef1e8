#include "capstan/torch/module_task.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "capstan/training/task_errors.h"
#include "capstan/user_error.h"

namespace capstan {
ModuleTask::ModuleTask(std::shared_ptr<torch::nn::Module> module) : module_(std::move(module)) {
  if (!module_) throw UserError("ModuleTask needs a module: the pointer is null");
  std::set<const c10::TensorImpl*> known;
  const auto is_new = [&](const at::Tensor& tensor) {
    return tensor.defined() && known.insert(tensor.unsafeGetTensorImpl()).second;
  };
  for (const auto& item : module_->named_parameters()) {
    if (!is_new(item.value())) continue;
    if (item.value().requires_grad())
      training::check_parameter(parameters_.emplace_back(NamedTensor{item.key(), item.value()}));
    else
      buffers_.push_back({item.key(), item.value()});
  }
  for (const auto& item : module_->named_buffers())
    if (is_new(item.value())) buffers_.push_back({item.key(), item.value()});
  if (parameters_.empty())
    throw UserError(
        fmt::format("module {} has no parameter that requires gradients: register one with "
                    "register_parameter() or register_module()",
                    module_->name()));
}

}  // namespace capstan
