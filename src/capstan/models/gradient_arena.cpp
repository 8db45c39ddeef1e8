#include "capstan/models/gradient_arena.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>

#include "capstan/base/check.h"
#include "capstan/models/arena.h"

namespace capstan::models {

GradientArena::GradientArena(NamedTensors parameters, const FlatLayout& layout, std::span<float> gradients)
    : parameters_(std::move(parameters)), layout_(layout), in_place_(layout.tensors().size()) {
  CAPSTAN_CHECK(layout_of(parameters_).difference(layout).empty(), "the layout is that of the model");
  redirect(gradients);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    hooks_.push_back(parameters_[i].tensor.register_hook(
        [this, i](const at::Tensor& gradient) { return take(i, gradient); }));
  }
}

GradientArena::~GradientArena() {
  for (std::size_t i = 0; i < hooks_.size(); ++i) {
    parameters_[i].tensor.remove_hook(hooks_[i]);
    parameters_[i].tensor.mutable_grad().reset();
  }
}

void GradientArena::redirect(std::span<float> gradients) {
  CAPSTAN_CHECK(gradients.size() == layout_.size(), "the array has the layout's size");
  gradients_ = gradients;
  for (std::size_t i = 0; i < layout_.tensors().size(); ++i) {
    const auto gap = layout_.range(i).end;
    const auto next = i + 1 < layout_.tensors().size() ? layout_.offset(i + 1) : layout_.size();
    std::fill(gradients_.begin() + gap, gradients_.begin() + next, 0.0f);
  }
}

void GradientArena::begin() {
  std::fill(in_place_.begin(), in_place_.end(), false);
  for (const auto& p : parameters_) p.tensor.mutable_grad().reset();
}

void GradientArena::finish() {
  for (std::size_t i = 0; i < in_place_.size(); ++i) {
    parameters_[i].tensor.mutable_grad().reset();
    if (in_place_[i]) continue;
    const auto range = layout_.range(i);
    std::fill(gradients_.begin() + range.begin, gradients_.begin() + range.end, 0.0f);
    if (ready_) ready_(i);
  }
}

at::Tensor GradientArena::take(std::size_t tensor, const at::Tensor& gradient) {
  auto place = tensor_in(layout_, tensor, gradients_.data());
  {
    at::NoGradGuard no_grad;
    place.copy_(gradient);
  }
  in_place_[tensor] = true;
  if (ready_) ready_(tensor);
  // The view itself becomes the parameter's grad: it has no other owner and the parameter's strides, so
  // autograd does not copy it.
  return place;
}

}  // namespace capstan::models
