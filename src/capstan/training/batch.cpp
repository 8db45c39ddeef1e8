#include "capstan/training/batch.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include "capstan/base/check.h"

namespace capstan::training {
std::array<std::int64_t, 4> channels_last_strides(const data::ImageShape& s) {
  return {s.channels * s.height * s.width, 1, s.width * s.channels, s.channels};
}

Batch gather(const data::ImageSource& source, std::span<const std::uint32_t> indices, std::uint64_t epoch) {
  const auto& s = source.shape();
  const auto count = static_cast<std::int64_t>(indices.size());
  Batch batch{at::empty_strided({count, s.channels, s.height, s.width}, channels_last_strides(s), at::kFloat),
              at::empty({count}, at::kLong),
              {},
              indices.size()};
  auto* image = batch.input.data_ptr<float>();
  auto* label = batch.target.data_ptr<std::int64_t>();
  for (const auto i : indices) {
    CAPSTAN_CHECK(i < source.count(), "the source has this sample");
    source.render(i, epoch, image);
    image += s.pixels();
    *label++ = source.label(i);
  }
  return batch;
}

}  // namespace capstan::training
