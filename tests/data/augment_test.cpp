#include "capstan/data/augment.h"

#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

namespace capstan::data {
namespace {

constexpr int kDraws = 20'000;

template <class Draw>
void for_each_draw(Draw draw) {
  for (std::uint64_t sample = 0; sample < kDraws; ++sample) {
    auto random = random_for(5, 2, sample);
    draw(random);
  }
}

TEST(Augment, IsParsedFromItsFlag) {
  EXPECT_EQ(parse_augment("auto"), Augment::kAuto);
  EXPECT_EQ(parse_augment("none"), Augment::kNone);
  EXPECT_EQ(parse_augment("crop-flip"), Augment::kCropFlip);
  EXPECT_EQ(parse_augment("resized-crop"), Augment::kResizedCrop);
  EXPECT_THAT([] { parse_augment("flip"); },
              testing::ThrowsMessage<UserError>(testing::HasSubstr("auto, none, crop-flip or resized-crop")));
}

TEST(Augment, RandomNumbersDependOnSeedEpochAndSample) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed : {1, 2})
    for (std::uint64_t epoch : {0, 1, 2})
      for (std::uint64_t sample : {0, 1, 7}) {
        seen.insert(random_for(seed, epoch, sample).next());
        EXPECT_EQ(random_for(seed, epoch, sample).next(), random_for(seed, epoch, sample).next());
      }
  EXPECT_EQ(seen.size(), 18u);
}

TEST(Augment, ShiftsAreEvenlySpreadAndMirrorHalf) {
  std::map<int, int> right, down;
  int mirrored = 0;
  for_each_draw([&](Random& random) {
    const auto shift = draw_shift(random);
    ++right[shift.right], ++down[shift.down], mirrored += shift.mirrored;
  });
  // The count of n draws with probability p differs by more than five standard deviations once in two million
  // times.
  const auto expect_share = [](int count, double p) {
    EXPECT_NEAR(count, kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p)));
  };
  ASSERT_EQ(right.size(), 9u);
  ASSERT_EQ(down.size(), 9u);
  for (int i = -4; i <= 4; ++i) expect_share(right[i], 1 / 9.0), expect_share(down[i], 1 / 9.0);
  expect_share(mirrored, 0.5);
}

TEST(Augment, ResizedCropsHaveTheRightAreasShapesAndPositions) {
  constexpr std::int64_t kWidth = 500, kHeight = 375;
  int mirrored = 0, small = 0, wide = 0, touching_left = 0;
  double areas = 0, middles = 0, most_ratio = 0, least_ratio = 10, most_area = 0, least_area = 1;
  for_each_draw([&](Random& random) {
    const auto [part, flip] = draw_resized_crop(random, kWidth, kHeight);
    ASSERT_GE(part.x, 0);
    ASSERT_GE(part.y, 0);
    ASSERT_LE(part.x + part.width, kWidth);
    ASSERT_LE(part.y + part.height, kHeight);
    const double area = static_cast<double>(part.width * part.height) / (kWidth * kHeight);
    const double ratio = static_cast<double>(part.width) / static_cast<double>(part.height);
    areas += area, mirrored += flip, small += area<0.3, wide += ratio> 1, touching_left += part.x == 0;
    middles += (static_cast<double>(part.x) + static_cast<double>(part.width) / 2) / kWidth;
    most_ratio = std::max(most_ratio, ratio), least_ratio = std::min(least_ratio, ratio);
    most_area = std::max(most_area, area), least_area = std::min(least_area, area);
  });
  // Sides are rounded to pixels, so that the smallest parts (about 120 pixels a side) are off by a percent.
  EXPECT_NEAR(least_area, 0.08, 0.001);
  EXPECT_GT(most_area, 0.97);
  EXPECT_NEAR(least_ratio, 3 / 4.0, 0.01);
  EXPECT_NEAR(most_ratio, 4 / 3.0, 0.01);
  EXPECT_NEAR(mirrored, kDraws / 2, 5 * std::sqrt(kDraws / 4.0));
  EXPECT_NEAR(middles / kDraws, 0.5, 0.01);
  // Up to an area of 0.56 every shape fits, and areas are uniform among the draws that fit; an upright 3:4
  // part fits only up to 0.56, and a square one up to 0.75, so small areas are somewhat more frequent than
  // 0.22 ÷ 0.92.
  EXPECT_GT(small, kDraws * 0.22 / 0.92);
  EXPECT_LT(small, kDraws * 0.36);
  EXPECT_GT(wide, kDraws / 2);
}

TEST(Augment, AnExtremeAspectRatioUsesTheCentreCrop) {
  auto random = random_for(1, 1, 1);
  EXPECT_EQ(draw_resized_crop(random, 1000, 30).part, (Rect{480, 0, 40, 30}));
  EXPECT_EQ(draw_resized_crop(random, 30, 1000).part, (Rect{0, 480, 30, 40}));
  EXPECT_EQ(draw_resized_crop(random, 1, 1).part, (Rect{0, 0, 1, 1}));
}

}  // namespace
}  // namespace capstan::data
