#include "capstan/training/module_state.h"

#include <ATen/core/grad_mode.h>

namespace capstan::training {
namespace {

bool is_trained(const torch::jit::ModulePtr& owner, std::size_t slot) {
  const auto& value = owner->getSlot(slot);
  return owner->type()->is_parameter(slot) && value.isTensor() && value.toTensor().requires_grad();
}

}  // namespace

ModuleState::ModuleState(const torch::jit::Module& module) {
  const at::NoGradGuard no_grad;
  for (const auto& part : module.modules()) save(part._ivalue());
}

void ModuleState::save(const torch::jit::ModulePtr& owner) {
  for (std::size_t slot = 0; slot < owner->type()->numAttributes(); ++slot) {
    if (owner->type()->getAttribute(slot)->is_module() || is_trained(owner, slot)) continue;
    auto& saved = attributes_.emplace_back(
        Attribute{owner, owner->type()->getAttributeName(slot), owner->getSlot(slot), {}});
    const bool is_listed = owner->type()->is_parameter(slot) || owner->type()->is_buffer(slot);
    if (is_listed && saved.value.isTensor())
      saved.values = saved.value.toTensor().detach().clone();
    else
      saved.value = saved.value.deepcopy();
  }
}

void ModuleState::restore() const {
  const at::NoGradGuard no_grad;
  for (const auto& [owner, name, value, values] : attributes_) {
    if (values.defined()) value.toTensor().copy_(values);
    owner->setAttr(name, value);
  }
}

}  // namespace capstan::training
