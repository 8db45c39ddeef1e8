#include "capstan/training/batch.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include "capstan/base/check.h"

namespace capstan::training {
namespace {

std::vector<std::int64_t> with_samples(std::int64_t samples, const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> sizes = {samples};
  sizes.insert(sizes.end(), dims.begin(), dims.end());
  return sizes;
}

at::Tensor empty_target(const data::SampleShape& shape, std::int64_t samples) {
  return shape.has_classes() ? at::empty({samples}, at::kLong)
                             : at::empty(target_sizes(shape, samples), at::kFloat);
}

}  // namespace

InputLayout input_layout(const data::SampleShape& shape, std::int64_t samples) {
  auto sizes = with_samples(samples, shape.input);
  if (shape.is_image()) {
    const auto channels = shape.channels(), width = shape.width();
    return {std::move(sizes), {channels * shape.height() * width, 1, width * channels, channels}};
  }
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (auto i = strides.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * sizes[i + 1];
  return {std::move(sizes), std::move(strides)};
}

std::vector<std::int64_t> target_sizes(const data::SampleShape& shape, std::int64_t samples) {
  return with_samples(samples, shape.target);
}

Batch gather(const data::SampleSource& source, std::span<const std::uint32_t> indices, std::uint64_t epoch) {
  const auto& shape = source.shape();
  const auto count = static_cast<std::int64_t>(indices.size());
  const auto [sizes, strides] = input_layout(shape, count);
  Batch batch{at::empty_strided(sizes, strides, at::kFloat), empty_target(shape, count), {}, indices.size()};
  auto* input = batch.input.data_ptr<float>();
  auto* const labels = shape.has_classes() ? batch.target.data_ptr<std::int64_t>() : nullptr;
  auto* const targets = shape.has_classes() ? nullptr : batch.target.data_ptr<float>();
  for (std::size_t i = 0; i < indices.size(); ++i, input += shape.elements()) {
    CAPSTAN_CHECK(indices[i] < source.count(), "the source has this sample");
    source.render(indices[i], epoch, input);
    if (labels)
      labels[i] = source.label(indices[i]);
    else
      source.write_target(indices[i], targets + i * shape.target_elements());
  }
  return batch;
}

}  // namespace capstan::training
