#include "capstan/training/batch.h"

#include <numeric>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include "capstan/base/check.h"

namespace capstan::training {
namespace {

void normalise(std::span<const std::uint8_t> pixels, const std::vector<data::Levels>& levels, float* out) {
  if (levels.size() == 1) {
    const auto& values = levels.front();
    for (const auto p : pixels) *out++ = values[p];
    return;
  }
  for (auto p = pixels.begin(); p != pixels.end();) {
    for (const auto& values : levels) *out++ = values[*p++];
  }
}

}  // namespace

Batch gather(const data::Split& split, std::span<const std::uint32_t> indices) {
  const auto& s = split.shape;
  const auto count = static_cast<std::int64_t>(indices.size());
  // Strides spelled out: with one channel libtorch's channels-last format would be ambiguous, and
  // convolutions would take the slower path.
  Batch batch{
      at::empty_strided({count, s.channels, s.height, s.width},
                        {s.channels * s.height * s.width, 1, s.width * s.channels, s.channels}, at::kFloat),
      at::empty({count}, at::kLong)};
  auto* image = batch.images.data_ptr<float>();
  auto* label = batch.labels.data_ptr<std::int64_t>();
  for (const auto i : indices) {
    CAPSTAN_CHECK(i < split.count(), "an index of a sample");
    normalise(split.image(i), split.levels, image);
    image += s.pixels();
    *label++ = split.labels[i];
  }
  return batch;
}

Batch gather_run(const data::Split& split, std::size_t first, std::size_t count) {
  std::vector<std::uint32_t> indices(count);
  std::iota(indices.begin(), indices.end(), static_cast<std::uint32_t>(first));
  return gather(split, indices);
}

}  // namespace capstan::training
