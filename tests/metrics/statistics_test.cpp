#include "capstan/metrics/statistics.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace capstan::metrics {
namespace {

// The expected numbers are NumPy's: min, max, mean, var(ddof=1), std(ddof=1), percentile(50, 95, 99).
void expect(const std::vector<double>& values, const Statistics& expected) {
  const auto found = statistics(values);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->count, values.size());
  EXPECT_EQ(found->min, expected.min);
  EXPECT_EQ(found->max, expected.max);
  EXPECT_DOUBLE_EQ(found->mean, expected.mean);
  ASSERT_EQ(found->variance.has_value(), expected.variance.has_value());
  if (expected.variance) {
    EXPECT_DOUBLE_EQ(*found->variance, *expected.variance);
    EXPECT_DOUBLE_EQ(found->stdev.value(), *expected.stdev);
  }
  EXPECT_DOUBLE_EQ(found->p50, expected.p50);
  EXPECT_DOUBLE_EQ(found->p95, expected.p95);
  EXPECT_DOUBLE_EQ(found->p99, expected.p99);
}

TEST(Statistics, AreThoseOfNumPy) {
  expect({2.98, 4.04, 3.5, 2093, 3.1, 3.25, 3.75},
         {7, 2.98, 2093, 301.94571428571425, 623753.6977285714, 789.7807909341499, 3.5, 1466.3119999999985,
          1967.662399999999});
  expect({2, 1}, {2, 1, 2, 1.5, 0.5, 0.7071067811865476, 1.5, 1.95, 1.99});
  std::vector<double> hundred(100);
  std::iota(hundred.rbegin(), hundred.rend(), 1.0);
  expect(hundred, {100, 1, 100, 50.5, 841.6666666666666, 29.011491975882016, 50.5, 95.05, 99.01});
}

TEST(Statistics, ASingleValueHasNoSpread) {
  expect({7.5}, {1, 7.5, 7.5, 7.5, {}, {}, 7.5, 7.5, 7.5});
}

TEST(Statistics, AnEmptySeriesHasNone) {
  EXPECT_FALSE(statistics({}));
}

// The values differ in their last digits only: a sum of squares minus a squared sum would be 0 or negative.
TEST(Statistics, VarianceOfLargeEqualValuesIsExact) {
  expect({1e9 + 1, 1e9 + 2, 1e9 + 3}, {3, 1e9 + 1, 1e9 + 3, 1e9 + 2, 1, 1, 1e9 + 2, 1e9 + 2.9, 1e9 + 2.98});
}

TEST(Quantile, OfTheEndsIsTheFirstAndTheLastValue) {
  const std::vector<double> values = {1, 4, 10};
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 1), 10);
  EXPECT_DOUBLE_EQ(quantile(values, 0.75), 7);
}

}  // namespace
}  // namespace capstan::metrics
