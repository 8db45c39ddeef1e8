#include "capstan/models/buffers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include "capstan/base/check.h"

namespace capstan::models {
namespace {

at::Tensor view(const FlatLayout& layout, std::size_t tensor, float* flat) {
  return at::from_blob(flat + layout.offset(tensor), layout.tensors()[tensor].dims, at::kFloat);
}

}  // namespace

FlatLayout buffer_layout_of(const NamedTensors& buffers) {
  std::vector<TensorShape> shapes;
  for (const auto& b : buffers) shapes.push_back({b.name, b.tensor.sizes().vec()});
  return FlatLayout(std::move(shapes));
}

std::vector<float> copy_buffers_out(const NamedTensors& buffers) {
  const at::NoGradGuard no_grad;
  const auto layout = buffer_layout_of(buffers);
  std::vector<float> flat(layout.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) view(layout, i, flat.data()).copy_(buffers[i].tensor);
  return flat;
}

void copy_buffers_in(const NamedTensors& buffers, std::span<const float> flat) {
  if (flat.empty()) return;
  const at::NoGradGuard no_grad;
  const auto layout = buffer_layout_of(buffers);
  CAPSTAN_CHECK(flat.size() == layout.size(), "the array has the size of the model's buffers");
  for (std::size_t i = 0; i < buffers.size(); ++i)
    buffers[i].tensor.copy_(view(layout, i, const_cast<float*>(flat.data())));
}

}  // namespace capstan::models
