#include "capstan/models/gradient_arena.h"

#include <algorithm>
#include <numeric>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "capstan/base/check.h"
#include "capstan/models/arena.h"
#include "capstan/user_error.h"

namespace capstan::models {

GradientArena::GradientArena(NamedTensors parameters, const FlatLayout& layout, std::span<float> gradients)
    : parameters_(std::move(parameters)),
      layout_(layout),
      in_place_(layout.tensors().size()),
      rows_(layout.tensors().size()) {
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
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].empty()) continue;
    const auto columns = static_cast<std::uint64_t>(layout_.tensors()[i].dims[1]);
    for (const auto row : rows_[i])
      std::fill_n(gradients_.begin() + layout_.offset(i) + row * columns, columns, 0.0f);
    rows_[i].clear();
  }
}

void GradientArena::finish() {
  for (std::size_t i = 0; i < in_place_.size(); ++i) {
    parameters_[i].tensor.mutable_grad().reset();
    if (in_place_[i]) continue;
    const auto range = layout_.range(i);
    if (!layout_.tensors()[i].sparse)
      std::fill(gradients_.begin() + range.begin, gradients_.begin() + range.end, 0.0f);
    if (ready_) ready_(i);
  }
}

// Each row is written at its place in the dense tensor.
void GradientArena::take_rows(std::size_t tensor, const at::Tensor& gradient) {
  const auto& shape = layout_.tensors()[tensor];
  if (!shape.sparse || gradient.sparse_dim() != 1)
    throw UserError(fmt::format(
        "parameter {} has a sparse gradient{}", shape.name,
        shape.sparse ? " of single elements: Capstan updates whole rows, as of torch::nn::Embedding"
                     : ", which its task does not declare: set NamedTensor::sparse, or make the layer with "
                       "sparse(false)"));
  const auto sum = gradient.coalesce();  // sorts the rows, each once
  const auto indices = sum.indices().contiguous(), values = sum.values().contiguous();
  const auto count = indices.numel(), columns = shape.dims[1];
  const auto* const numbers = indices.data_ptr<std::int64_t>();
  const auto* const from = values.data_ptr<float>();
  auto* const to = gradients_.data() + layout_.offset(tensor);
  for (std::int64_t i = 0; i < count; ++i) {
    rows_[tensor].push_back(static_cast<std::uint32_t>(numbers[i]));
    std::copy_n(from + i * columns, columns, to + numbers[i] * columns);
  }
}

at::Tensor GradientArena::take(std::size_t tensor, const at::Tensor& gradient) {
  if (gradient.is_sparse()) {
    const at::NoGradGuard no_grad;
    take_rows(tensor, gradient);
    in_place_[tensor] = true;
    if (ready_) ready_(tensor);
    return {};  // the parameter keeps its own gradient until finish()
  }
  if (layout_.tensors()[tensor].sparse) {
    rows_[tensor].resize(static_cast<std::size_t>(layout_.tensors()[tensor].dims[0]));
    std::iota(rows_[tensor].begin(), rows_[tensor].end(), 0u);
  }
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
