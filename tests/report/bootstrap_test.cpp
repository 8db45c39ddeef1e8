#include "capstan/report/bootstrap.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace capstan::report {
namespace {

TEST(Bootstrap, OneValueHasNoInterval) {
  const std::vector<double> one = {5}, two = {5, 6};
  EXPECT_FALSE(mean_interval(one));
  EXPECT_FALSE(mean_interval({}));
  EXPECT_FALSE(ratio_interval(one, two));
  EXPECT_FALSE(ratio_interval(two, one));
}

// A quarter of the resamples of two values has the smaller one twice: far more than 2.5 %, also in pairs.
TEST(Bootstrap, TwoValuesGiveTheirRange) {
  const std::vector<double> base = {100, 110}, values = {120, 150};
  const auto mean = mean_interval(values);
  ASSERT_TRUE(mean);
  EXPECT_EQ(mean->low, 120);
  EXPECT_EQ(mean->high, 150);
  const auto ratio = ratio_interval(values, base);
  ASSERT_TRUE(ratio);
  EXPECT_EQ(ratio->low, 120.0 / 110);
  EXPECT_EQ(ratio->high, 150.0 / 100);
}

TEST(Bootstrap, EqualValuesHaveNoNoise) {
  const std::vector<double> base = {4, 4, 4}, values = {5, 5};
  const auto ratio = ratio_interval(values, base);
  ASSERT_TRUE(ratio);
  EXPECT_EQ(ratio->low, 1.25);
  EXPECT_EQ(ratio->high, 1.25);
}

// For many values it is the normal interval: mean ± 1.96 · stdev ÷ √n. The values 1 … 400 have mean 200.5 and
// stdev 115.6, so the interval is 200.5 ± 11.3; a bootstrap of 2,000 resamples is within a tenth of that.
TEST(Bootstrap, ManyValuesGiveTheNormalInterval) {
  std::vector<double> values;
  for (int i = 1; i <= 400; ++i) values.push_back(i);
  const auto mean = mean_interval(values);
  ASSERT_TRUE(mean);
  EXPECT_NEAR(mean->low, 200.5 - 11.33, 1.2);
  EXPECT_NEAR(mean->high, 200.5 + 11.33, 1.2);
  // Independent errors of 5.65 % each add up to 7.99 % of the ratio.
  const auto ratio = ratio_interval(values, values);
  ASSERT_TRUE(ratio);
  EXPECT_NEAR(ratio->low, 1 - 0.0799, 0.012);
  EXPECT_NEAR(ratio->high, 1 + 0.0799, 0.012);
}

TEST(Bootstrap, IsTheSameEveryTime) {
  const std::vector<double> a = {1, 2, 4, 8, 16}, b = {3, 5, 7};
  EXPECT_EQ(ratio_interval(a, b)->low, ratio_interval(a, b)->low);
  EXPECT_EQ(ratio_interval(a, b)->high, ratio_interval(a, b)->high);
}

}  // namespace
}  // namespace capstan::report
