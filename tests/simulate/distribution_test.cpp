#include "capstan/simulate/distribution.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "capstan/user_error.h"

namespace capstan::simulate {
namespace {

Distribution of(const std::string& text) {
  return Distribution::parse("--compute", text);
}

std::vector<double> samples(const std::string& text, std::size_t count) {
  Random random(7);
  const auto distribution = of(text);
  std::vector<double> out(count);
  for (auto& x : out) x = distribution.sample(random);
  return out;
}

double mean_of(const std::vector<double>& x) {
  double sum = 0;
  for (const auto v : x) sum += v;
  return sum / static_cast<double>(x.size());
}

double deviation_of(const std::vector<double>& x) {
  const double mean = mean_of(x);
  double sum = 0;
  for (const auto v : x) sum += (v - mean) * (v - mean);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

TEST(Distribution, LognormalIsGivenByItsMedian) {
  auto x = samples("lognormal(0.2,0.5)", 200'001);
  std::ranges::nth_element(x, x.begin() + 100'000);
  EXPECT_NEAR(x[100'000], 0.2, 0.002);
  std::vector<double> logarithms;
  for (const auto v : x) logarithms.push_back(std::log(v));
  EXPECT_NEAR(deviation_of(logarithms), 0.5, 0.005);
}

TEST(Distribution, MomentsAreThoseOfTheSamples) {
  for (const char* text : {"constant(0.3)", "0.3", "lognormal(0.2,0.5)", "uniform(1,3)", "exponential(0.4)",
                           "normal(1,0.1)", "normal(0.1,0.3)", "normal(0,1)", "normal(2,0)"}) {
    const auto x = samples(text, 400'000);
    const auto d = of(text);
    EXPECT_NEAR(d.mean(), mean_of(x), 0.01 * d.mean()) << text;
    EXPECT_NEAR(d.deviation(), deviation_of(x), 0.02 * d.deviation() + 1e-9) << text;
    EXPECT_GE(*std::ranges::min_element(x), 0) << text;
  }
}

TEST(Distribution, AroundAMeanKeepsIt) {
  Random random(7);
  const auto d = Distribution::around(0.3, 0.4);
  std::vector<double> x(400'000);
  for (auto& v : x) v = d.sample(random);
  EXPECT_NEAR(mean_of(x), 0.3, 0.003);
  for (auto& v : x) v = std::log(v);
  EXPECT_NEAR(deviation_of(x), 0.4, 0.004);
  EXPECT_EQ(Distribution::around(0.3, 0).text(), "constant(0.3)");
}

TEST(Distribution, SumsOfFewAndManyHaveTheMomentsOfSums) {
  for (const std::uint64_t count : {1, 10, 16, 17, 500}) {
    Random random(3);
    const auto d = of("exponential(0.5)");
    std::vector<double> sums(50'000);
    for (auto& s : sums) s = d.sample_sum(random, count);
    const auto n = static_cast<double>(count);
    EXPECT_NEAR(mean_of(sums), 0.5 * n, 0.02 * 0.5 * n) << count;
    EXPECT_NEAR(deviation_of(sums), 0.5 * std::sqrt(n), 0.03 * 0.5 * std::sqrt(n)) << count;
  }
}

TEST(Distribution, TextRoundTrips) {
  for (const char* text : {"constant(0.2)", "lognormal(0.2,0.5)", "uniform(0.1,0.3)", "normal(1,0.25)"})
    EXPECT_EQ(of(text).text(), text);
  EXPECT_EQ(of("lognormal( 0.2, 0.5 )").text(), "lognormal(0.2,0.5)");
  EXPECT_EQ(of("0.25").text(), "constant(0.25)");
}

std::string error_of(const std::string& text) {
  try {
    of(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

TEST(Distribution, ReportsWhatIsWrong) {
  EXPECT_EQ(error_of("lognorml(0.2,0.5)"),
            "--compute lognorml(0.2,0.5): unknown distribution (did you mean lognormal?); known: constant, "
            "lognormal, uniform, exponential, normal");
  EXPECT_EQ(error_of("lognormal(0.2)"), "--compute lognormal(0.2): should be lognormal(median,sigma)");
  EXPECT_EQ(error_of("uniform(3,1)"),
            "--compute uniform(3,1): should be uniform(least,most) with the smaller one first");
  for (const char* text : {"", "abc", "-1", "nan", "inf", "lognormal", "lognormal(", "lognormal(0.2,0.5",
                           "lognormal()", "lognormal(0.2,,0.5)", "lognormal(0.2,9)", "constant(1)x", "1e300"})
    EXPECT_NE(error_of(text), "none") << text;
}

}  // namespace
}  // namespace capstan::simulate
