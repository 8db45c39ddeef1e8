#include "capstan/lab/bucket_gradients.h"

#include <algorithm>
#include <numeric>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include "capstan/user_error.h"

namespace capstan::lab {

BucketGradients::BucketGradients(NamedTensors parameters, std::vector<AssignedBucket> buckets,
                                 std::vector<Memory> memory, OnReady on_ready)
    : parameters_(std::move(parameters)),
      buckets_(std::move(buckets)),
      memory_(std::move(memory)),
      on_ready_(std::move(on_ready)),
      places_(parameters_.size()),
      taken_(parameters_.size()),
      missing_(buckets_.size()) {
  for (std::size_t b = 0; b < buckets_.size(); ++b)
    for (const auto& part : buckets_[b].parts) places_[part.parameter] = {b, part};
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    hooks_.push_back(parameters_[i].tensor.register_hook(
        [this, i](const at::Tensor& gradient) { return take(i, gradient); }));
}

BucketGradients::~BucketGradients() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].tensor.remove_hook(hooks_[i]);
    parameters_[i].tensor.mutable_grad().reset();
  }
}

void BucketGradients::begin() {
  std::fill(taken_.begin(), taken_.end(), false);
  for (std::size_t b = 0; b < buckets_.size(); ++b) missing_[b] = buckets_[b].parts.size();
  for (const auto& parameter : parameters_) parameter.tensor.mutable_grad().reset();
}

void BucketGradients::finish() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].tensor.mutable_grad().reset();
    if (taken_[i]) continue;
    if (!parameters_[i].sparse) view(i).zero_();
    arrived(i, 0);
  }
}

at::Tensor BucketGradients::view(std::size_t parameter) const {
  const auto& [bucket, part] = places_[parameter];
  return at::from_blob(memory_[bucket].values.data() + part.offset, parameters_[parameter].tensor.sizes(),
                       at::kFloat);
}

void BucketGradients::arrived(std::size_t parameter, std::size_t rows) {
  taken_[parameter] = true;
  const auto bucket = places_[parameter].bucket;
  if (--missing_[bucket] == 0) on_ready_(bucket, rows);
}

std::size_t BucketGradients::take_rows(std::size_t parameter, const at::Tensor& gradient) {
  if (!parameters_[parameter].sparse || gradient.sparse_dim() != 1)
    throw UserError(
        fmt::format("parameter {} has a sparse gradient that its model does not declare: only "
                    "torch::nn::Embedding and EmbeddingBag may have one",
                    parameters_[parameter].name));
  const auto sum = gradient.coalesce();  // sorts the rows, each once
  const auto indices = sum.indices().contiguous(), values = sum.values().contiguous();
  const auto count = static_cast<std::size_t>(indices.numel());
  const auto& memory = memory_[places_[parameter].bucket];
  std::copy_n(indices.data_ptr<std::int64_t>(), count, memory.rows.begin());
  std::copy_n(values.data_ptr<float>(), values.numel(), memory.values.begin());
  return count;
}

at::Tensor BucketGradients::take(std::size_t parameter, const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  if (gradient.is_sparse()) {
    arrived(parameter, take_rows(parameter, gradient));
    return {};  // the parameter keeps its own gradient until finish()
  }
  auto place = view(parameter);
  place.copy_(gradient);
  std::size_t rows = 0;
  if (parameters_[parameter].sparse) {
    rows = static_cast<std::size_t>(gradient.size(0));
    std::iota(memory_[places_[parameter].bucket].rows.begin(),
              memory_[places_[parameter].bucket].rows.begin() + static_cast<std::ptrdiff_t>(rows), 0u);
  }
  arrived(parameter, rows);
  // The view itself becomes the parameter's gradient, so that autograd does not copy it.
  return place;
}

}  // namespace capstan::lab
