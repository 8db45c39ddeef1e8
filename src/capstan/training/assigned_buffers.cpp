#include "capstan/training/assigned_buffers.h"

#include <algorithm>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "capstan/layout.h"
#include "capstan/user_error.h"

namespace capstan::training {
namespace {

std::string describe(const at::Tensor& tensor) {
  return fmt::format("{} of {}", shape_text(tensor.sizes().vec()), c10::toString(tensor.scalar_type()));
}

}  // namespace

AssignedBuffers::AssignedBuffers(const torch::jit::Module& module, std::string model,
                                 NamedTensors& parameters, NamedTensors& buffers)
    : model_(std::move(model)) {
  for (auto* const list : {&parameters, &buffers}) {
    for (auto& tensor : *list) {
      add(module, tensor.name, tensor, list == &parameters);
      for (const auto& alias : tensor.aliases) add(module, alias, tensor, list == &parameters);
    }
  }
}

void AssignedBuffers::add(const torch::jit::Module& module, const std::string& name, NamedTensor& listed,
                          bool is_parameter) {
  auto owner = module._ivalue();
  std::size_t begin = 0;
  for (auto dot = name.find('.'); dot != std::string::npos; dot = name.find('.', begin)) {
    owner = owner->getAttr(name.substr(begin, dot - begin)).toObject();
    begin = dot + 1;
  }
  const auto index = owner->type()->getAttributeSlot(name.substr(begin));
  const bool is_known = std::ranges::any_of(
      slots_, [&](const Slot& s) { return s.owner == owner && s.index == index; });  // a shared layer
  if (!is_known) slots_.push_back({owner, index, name, &listed, is_parameter});
}

void AssignedBuffers::adopt() {
  for (const auto& slot : slots_)
    if (!slot.owner->getSlot(slot.index).toTensor().is_same(slot.listed->tensor)) adopt(slot);
}

void AssignedBuffers::adopt(const Slot& slot) {
  const auto assigned = slot.owner->getSlot(slot.index).toTensor();
  check(slot, assigned);
  const at::NoGradGuard no_grad;
  // It may be a view of the batch, whose memory is used again.
  slot.listed->tensor = assigned.detach().clone(at::MemoryFormat::Contiguous);
  slot.owner->setSlot(slot.index, slot.listed->tensor);
}

void AssignedBuffers::check(const Slot& slot, const at::Tensor& assigned) const {
  if (slot.is_parameter) fail(slot, "assigns to a parameter; parameters change by their gradients only");
  for (const auto& other : slots_)
    if (other.listed == slot.listed && &other != &slot)
      fail(slot, fmt::format("assigns to one of two names of a buffer, the other is {}; write it in place "
                             "(copy_), or give each name a tensor of its own",
                             other.name));
  const auto& now = slot.listed->tensor;
  if (assigned.sizes() != now.sizes() || assigned.scalar_type() != now.scalar_type())
    fail(slot, fmt::format("assigns {} to a buffer that is {}; shape and type must not change",
                           describe(assigned), describe(now)));
}

void AssignedBuffers::fail(const Slot& slot, const std::string& what) const {
  throw UserError(fmt::format("--network {}: {}: {}", model_, slot.name, what));
}

}  // namespace capstan::training
