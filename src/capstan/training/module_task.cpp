#include "capstan/torch/module_task.h"

#include <utility>

#include <fmt/format.h>
#include <torch/nn/modules/embedding.h>

#include "capstan/training/aliases.h"
#include "capstan/training/task_errors.h"
#include "capstan/user_error.h"

namespace capstan {
namespace {

// The weight of an embedding whose gradients are sparse; undefined for any other module.
at::Tensor sparse_weight(const torch::nn::Module& module) {
  if (const auto* embedding = module.as<torch::nn::EmbeddingImpl>())
    return embedding->options.sparse() ? embedding->weight : at::Tensor();
  if (const auto* bag = module.as<torch::nn::EmbeddingBagImpl>())
    return bag->options.sparse() ? bag->weight : at::Tensor();
  return {};
}

}  // namespace

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
  for (const auto& module_of : module_->modules()) {
    const auto weight = sparse_weight(*module_of);
    for (auto& parameter : parameters_)
      if (weight.defined() && parameter.tensor.is_same(weight)) parameter.sparse = true;
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
