#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace capstan::models {

// The layers of networks. Each holds handles of tensors that its network owns; Network creates them. Calling
// a layer runs its part of a forward pass. Inputs and outputs are channels-last in memory.

// The kernel of a convolution.
struct Kernel {
  std::array<std::int64_t, 2> size;  // height, width
  std::int64_t stride = 1;
  std::array<std::int64_t, 2> padding = {0, 0};
  std::int64_t groups = 1;
};

// same and asymmetric: padded so that stride 1 keeps an image's size. valid: without padding.
constexpr Kernel same(std::int64_t size, std::int64_t stride = 1) {
  return {{size, size}, stride, {size / 2, size / 2}};
}
constexpr Kernel asymmetric(std::int64_t height, std::int64_t width) {
  return {{height, width}, 1, {height / 2, width / 2}};
}
constexpr Kernel valid(std::int64_t size, std::int64_t stride = 1) {
  return {{size, size}, stride};
}

struct Conv {
  at::Tensor weight;
  at::Tensor bias;  // undefined for none
  Kernel kernel;

  at::Tensor operator()(const at::Tensor& x) const;
};

// In training mode it normalises by the batch's statistics and updates the running ones, which it uses in
// evaluation mode. A batch with one value per channel has no variance (PyTorch rejects it): it is normalised
// by the running statistics and does not change them, so that a last batch of one sample does no harm.
struct BatchNorm {
  at::Tensor weight, bias;
  at::Tensor running_mean, running_var, num_batches_tracked;
  double eps = 1e-5;
  const bool* training = nullptr;  // the network's

  at::Tensor operator()(const at::Tensor& x) const;
};

struct Linear {
  at::Tensor weight, bias;

  at::Tensor operator()(const at::Tensor& x) const;
};

struct Dropout {
  double rate = 0.5;
  const bool* training = nullptr;  // the network's

  at::Tensor operator()(const at::Tensor& x) const;
};

struct ConvNorm {
  Conv conv;
  BatchNorm norm;

  at::Tensor operator()(const at::Tensor& x) const { return norm(conv(x)); }
};

// ReLU, in place: the backward pass of the layer before does not need its output.
at::Tensor rectified(at::Tensor x);

// Global average pooling: the mean over each image, N x channels.
at::Tensor averaged(const at::Tensor& x);

}  // namespace capstan::models
