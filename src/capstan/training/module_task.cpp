#include "capstan/torch/module_task.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "capstan/base/user_error.h"

namespace capstan {
namespace {

// A server stores 32-bit floats, and workers compute on the CPU.
void check_parameter(const NamedTensor& parameter) {
  const auto& tensor = parameter.tensor;
  if (tensor.scalar_type() != at::kFloat)
    throw UserError(
        fmt::format("parameter {} has the type {}: Capstan trains parameters of 32-bit floats; call "
                    "to(torch::kFloat) on the module",
                    parameter.name, c10::toString(tensor.scalar_type())));
  if (!tensor.device().is_cpu())
    throw UserError(
        fmt::format("parameter {} is on the device {}: Capstan computes on the CPU; call "
                    "to(torch::kCPU) on the module",
                    parameter.name, tensor.device().str()));
}

}  // namespace

ModuleTask::ModuleTask(std::shared_ptr<torch::nn::Module> module) : module_(std::move(module)) {
  if (!module_) throw UserError("ModuleTask needs a module: the pointer is null");
  std::set<const c10::TensorImpl*> known;
  const auto is_new = [&](const at::Tensor& tensor) {
    return tensor.defined() && known.insert(tensor.unsafeGetTensorImpl()).second;
  };
  for (const auto& item : module_->named_parameters()) {
    if (!is_new(item.value())) continue;
    if (item.value().requires_grad())
      check_parameter(parameters_.emplace_back(NamedTensor{item.key(), item.value()}));
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
