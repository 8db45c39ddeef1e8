#include "capstan/training/batch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "capstan/data/memory_source.h"

namespace capstan::training {
namespace {

data::Split random_split(const data::SampleShape& shape, std::size_t count) {
  data::Split split;
  split.shape = shape;
  for (std::size_t i = 0; i < count * shape.elements(); ++i)
    split.pixels.push_back(static_cast<std::uint8_t>(i * 37 % 251));
  for (std::size_t i = 0; i < count; ++i)
    split.labels.push_back(static_cast<std::int64_t>(i) % shape.classes);
  for (int c = 0; c < shape.channels(); ++c) split.levels.push_back(data::normalised_levels(0.1 * c, 0.5));
  return split;
}

TEST(Batch, HasTheRequestedSamplesInOrderNormalised) {
  const auto split = random_split({{3, 4, 5}, 7}, 10);
  const std::vector<std::uint32_t> indices = {7, 0, 7, 9};
  const auto batch = gather(data::MemorySource(split), indices);
  ASSERT_EQ(batch.input.sizes(), (at::IntArrayRef{4, 3, 4, 5}));
  const auto value = batch.input.accessor<float, 4>();
  for (int n = 0; n < 4; ++n) {
    EXPECT_EQ(batch.target[n].item<std::int64_t>(), split.labels[indices[n]]);
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < 4; ++y) {
        for (int x = 0; x < 5; ++x) {
          const auto pixel = split.pixels[indices[n] * 60 + (y * 5 + x) * 3 + c];
          ASSERT_NEAR(value[n][c][y][x], (pixel / 255.0 - 0.1 * c) / 0.5, 1e-6);
        }
      }
    }
  }
}

TEST(Batch, IsChannelsLast) {
  constexpr std::uint32_t kBoth[] = {0, 1};
  const auto coloured = gather(data::MemorySource(random_split({{3, 4, 5}, 7}, 2)), kBoth);
  EXPECT_TRUE(coloured.input.is_contiguous(at::MemoryFormat::ChannelsLast));
  const auto grey = gather(data::MemorySource(random_split({{1, 4, 5}, 7}, 2)), kBoth);
  EXPECT_EQ(grey.input.suggest_memory_format(), at::MemoryFormat::ChannelsLast);
}

// Sample i: 2x3 inputs 10·i + 0 … 5, and the targets i and i/2.
data::Split numbers(std::size_t count) {
  data::Split split;
  split.shape = {{2, 3}, 0, {2}};
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < 6; ++k) split.values.push_back(static_cast<float>(10 * i + k));
    split.targets.push_back(static_cast<float>(i));
    split.targets.push_back(static_cast<float>(i) / 2);
  }
  return split;
}

TEST(Batch, OfNumbersIsRowMajorWithTargetsOfFloats) {
  const std::vector<std::uint32_t> indices = {4, 1, 1};
  const auto batch = gather(data::MemorySource(numbers(5)), indices);
  EXPECT_EQ(batch.samples, 3u);
  EXPECT_TRUE(batch.input.is_contiguous());
  EXPECT_TRUE(at::equal(batch.input, at::tensor({40., 41., 42., 43., 44., 45., 10., 11., 12., 13., 14., 15.,
                                                 10., 11., 12., 13., 14., 15.})
                                         .to(at::kFloat)
                                         .view({3, 2, 3})));
  EXPECT_TRUE(at::equal(batch.target, at::tensor({4., 2., 1., 0.5, 1., 0.5}).to(at::kFloat).view({3, 2})));
}

TEST(Batch, MayBeEmpty) {
  const auto batch = gather(data::MemorySource(random_split({{1, 2, 2}, 5}, 6)), {});
  EXPECT_EQ(batch.samples, 0u);
  EXPECT_EQ(batch.input.sizes(), (at::IntArrayRef{0, 1, 2, 2}));
}

}  // namespace
}  // namespace capstan::training
