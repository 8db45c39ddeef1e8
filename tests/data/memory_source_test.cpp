#include "capstan/data/memory_source.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "data/rendered.h"

namespace capstan::data {
namespace {

using namespace capstan::testing;

constexpr std::int64_t kHeight = 6, kWidth = 5, kChannels = 3;

Split some_images(std::size_t count) {
  Split split;
  split.shape = {{kChannels, kHeight, kWidth}, 4};
  for (std::size_t i = 0; i < count; ++i) {
    split.labels.push_back(static_cast<std::int64_t>(i % 4));
    for (std::size_t p = 0; p < split.shape.elements(); ++p)
      split.pixels.push_back(static_cast<std::uint8_t>(1 + (i * 91 + p * 7) % 250));
  }
  for (int c = 0; c < kChannels; ++c) split.levels.push_back(normalised_levels(0.1 * (c + 1), 0.2));
  return split;
}

// The definition: pad the image with 4 black pixels, crop to the image's size, mirror, normalise.
std::vector<float> cut_and_mirrored(const Split& split, std::size_t sample, const Shift& shift) {
  std::vector<std::vector<int>> framed(kHeight + 8, std::vector<int>((kWidth + 8) * kChannels, 0));
  for (std::int64_t y = 0; y < kHeight; ++y)
    for (std::int64_t i = 0; i < kWidth * kChannels; ++i)
      framed[y + 4][4 * kChannels + i] = split.image(sample)[y * kWidth * kChannels + i];
  std::vector<float> out;
  for (std::int64_t y = 0; y < kHeight; ++y) {
    const auto& row = framed[y + 4 + shift.down];
    std::vector<std::vector<int>> cut;
    for (std::int64_t x = 0; x < kWidth; ++x) {
      const auto* pixel = row.data() + (x + 4 + shift.right) * kChannels;
      cut.push_back({pixel, pixel + kChannels});
    }
    if (shift.mirrored) std::reverse(cut.begin(), cut.end());
    for (const auto& pixel : cut)
      for (int c = 0; c < kChannels; ++c)
        out.push_back(static_cast<float>((pixel[c] / 255.0 - 0.1 * (c + 1)) / 0.2));
  }
  return out;
}

TEST(MemorySource, RendersImagesUnchanged) {
  const auto split = some_images(7);
  const MemorySource source(split);
  EXPECT_TRUE(source.is_immediate());
  EXPECT_EQ(source.count(), 7u);
  EXPECT_EQ(source.label(6), 2);
  for (const std::uint64_t epoch : {0, 3})
    EXPECT_EQ(rendered(source, 5, epoch), cut_and_mirrored(split, 5, {}));
}

TEST(MemorySource, ShiftsWithBlackBordersAndMirrors) {
  const auto split = some_images(50);
  const auto source = MemorySource::crop_flip(split, 9);
  EXPECT_FALSE(source->is_immediate());
  std::set<std::tuple<int, int, bool>> shifts;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    for (std::size_t sample = 0; sample < 50; ++sample) {
      auto random = random_for(9, epoch, sample);
      const auto shift = draw_shift(random);
      shifts.insert({shift.right, shift.down, shift.mirrored});
      ASSERT_EQ(rendered(*source, sample, epoch), cut_and_mirrored(split, sample, shift));
    }
  }
  EXPECT_GT(shifts.size(), 80u) << "of 162: epochs and samples differ";
}

// Samples of 2x3 numbers with two numbers as target.
TEST(MemorySource, ReturnsNumbersUnchanged) {
  Split split;
  split.shape = {{2, 3}, 0, {2}};
  for (int i = 0; i < 4 * 6; ++i) split.values.push_back(0.25f * static_cast<float>(i));
  for (int i = 0; i < 4 * 2; ++i) split.targets.push_back(-static_cast<float>(i));
  const MemorySource source(split);
  EXPECT_TRUE(source.is_immediate());
  EXPECT_EQ(source.count(), 4u);
  EXPECT_EQ(rendered(source, 2, 7), (std::vector<float>{3, 3.25f, 3.5f, 3.75f, 4, 4.25f}));
  EXPECT_EQ(target(source, 3), (std::vector<float>{-6, -7}));
}

// Images of floats are shifted as images of bytes that are normalised to the same floats.
TEST(MemorySource, ShiftsImagesOfFloats) {
  const auto bytes = some_images(20);
  auto floats = bytes;
  floats.pixels.clear();
  for (std::size_t i = 0; i < bytes.pixels.size(); ++i)
    floats.values.push_back(
        static_cast<float>((bytes.pixels[i] / 255.0 - 0.1 * static_cast<double>(i % 3 + 1)) / 0.2));
  for (int c = 0; c < kChannels; ++c) floats.black.push_back(static_cast<float>(-0.1 * (c + 1) / 0.2));
  const auto source = MemorySource::crop_flip(floats, 9);
  for (std::size_t sample = 0; sample < 20; ++sample) {
    auto random = random_for(9, 3, sample);
    ASSERT_EQ(rendered(*source, sample, 3), cut_and_mirrored(bytes, sample, draw_shift(random)));
  }
}

}  // namespace
}  // namespace capstan::data
