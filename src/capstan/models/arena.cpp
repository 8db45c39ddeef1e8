#include "capstan/models/arena.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include "capstan/base/check.h"
#include "capstan/user_error.h"

namespace capstan::models {
namespace {

std::vector<std::int64_t> arena_strides(const std::vector<std::int64_t>& dims) {
  if (dims.size() == 4) return {dims[1] * dims[2] * dims[3], 1, dims[3] * dims[1], dims[1]};
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (auto i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

}  // namespace

FlatLayout layout_of(const NamedTensors& parameters) {
  std::vector<TensorShape> shapes;
  for (const auto& p : parameters) shapes.push_back({p.name, p.tensor.sizes().vec(), p.sparse});
  return FlatLayout(std::move(shapes));
}

at::Tensor tensor_in(const FlatLayout& layout, std::size_t tensor, float* flat) {
  const auto& dims = layout.tensors()[tensor].dims;
  return at::from_blob(flat + layout.offset(tensor), dims, arena_strides(dims), at::kFloat);
}

void bind_parameters(const NamedTensors& parameters, const FlatLayout& layout, const float* weights) {
  CAPSTAN_CHECK(layout_of(parameters).difference(layout).empty(), "the layout is that of the model");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    // libtorch has no read-only tensors; forward and backward only read parameters.
    parameters[i].tensor.set_data(tensor_in(layout, i, const_cast<float*>(weights)));
  }
}

void unbind_parameters(const NamedTensors& parameters) {
  for (const auto& p : parameters) p.tensor.set_data(p.tensor.detach().clone());
}

void copy_parameters_out(const NamedTensors& parameters, const FlatLayout& layout, std::span<float> flat) {
  CAPSTAN_CHECK(layout_of(parameters).difference(layout).empty(), "the layout is that of the model");
  CAPSTAN_CHECK(flat.size() == layout.size(), "the array has the layout's size");
  at::NoGradGuard no_grad;
  std::fill(flat.begin(), flat.end(), 0.0f);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    tensor_in(layout, i, flat.data()).copy_(parameters[i].tensor);
  }
}

}  // namespace capstan::models
