#include "capstan/models/layers.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>

namespace capstan::models {

at::Tensor Conv::operator()(const at::Tensor& x) const {
  return at::conv2d(x, weight, bias, kernel.stride, kernel.padding, 1, kernel.groups);
}

at::Tensor BatchNorm::operator()(const at::Tensor& x) const {
  constexpr double kMomentum = 0.1;
  const bool by_batch = *training && x.numel() > x.size(1);
  if (by_batch) ++*num_batches_tracked.data_ptr<std::int64_t>();
  return at::batch_norm(x, weight, bias, running_mean, running_var, by_batch, kMomentum, eps, false);
}

at::Tensor Linear::operator()(const at::Tensor& x) const {
  return at::linear(x, weight, bias);
}

at::Tensor Dropout::operator()(const at::Tensor& x) const {
  return *training && rate > 0 ? at::dropout(x, rate, true) : x;
}

at::Tensor rectified(at::Tensor x) {
  return at::relu_(x);
}

at::Tensor averaged(const at::Tensor& x) {
  return at::adaptive_avg_pool2d(x, {1, 1}).flatten(1);
}

}  // namespace capstan::models
