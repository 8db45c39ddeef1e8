#include "capstan/metrics/evaluation.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace capstan::metrics {
namespace {

const Metric kAccuracy{"accuracy", Metric::Better::kHigher, Metric::Of::kMean, true};
const Metric kPerplexity{"perplexity", Metric::Better::kLower, Metric::Of::kExp};
const Metric kError{"rmse", Metric::Better::kLower, Metric::Of::kRoot};
constexpr auto kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Evaluation, ValuesFollowFromTheMeanOverTheTestSet) {
  EXPECT_DOUBLE_EQ(value_of(kAccuracy, {3, 4}), 0.75);
  EXPECT_DOUBLE_EQ(value_of(kPerplexity, {6, 3}), std::exp(2.0));
  EXPECT_DOUBLE_EQ(value_of(kError, {18, 2}), 3);
  EXPECT_TRUE(std::isnan(value_of(kAccuracy, {}))) << "of no sample";
}

TEST(Evaluation, ComparesInTheDirectionOfTheMetric) {
  EXPECT_TRUE(is_better(kAccuracy, 0.9, 0.8));
  EXPECT_FALSE(is_better(kAccuracy, 0.8, 0.8));
  EXPECT_TRUE(is_better(kPerplexity, 2, 3));
  EXPECT_FALSE(is_better(kPerplexity, 3, 2));
  EXPECT_TRUE(is_better(kPerplexity, 1000, kNaN)) << "anything is better than what is not a number";
  EXPECT_FALSE(is_better(kPerplexity, kNaN, 1000));
  EXPECT_FALSE(is_better(kPerplexity, kNaN, kNaN));
}

TEST(Evaluation, HasATextAndAMemberForEachMetric) {
  const Evaluation evaluation{{kAccuracy, kPerplexity, kError}, {0.5, 2, 3}, 10};
  EXPECT_EQ(evaluation.text(), "test accuracy 50.00 %, test perplexity 2.0000");
  EXPECT_EQ(evaluation.text("  ", 9), "test accuracy 50.00 %  test perplexity 2.0000  test rmse 3.0000");
  EXPECT_EQ(title_of({"energy_distance"}), "energy distance");
  Json json{{"step", 1}};
  evaluation.add_to(json);
  EXPECT_EQ(json.dump(), R"({"step":1,"test_accuracy":0.5,"test_perplexity":2.0,"test_rmse":3.0})");
  EXPECT_EQ(
      to_json(std::vector{kAccuracy, kError}).dump(),
      R"([{"name":"accuracy","better":"higher","percent":true},{"name":"rmse","better":"lower","percent":false}])");
}

TEST(Evaluation, IsFiniteIfEveryValueIs) {
  EXPECT_TRUE((Evaluation{{kAccuracy, kError}, {0.5, 1}, 1}.is_finite()));
  EXPECT_FALSE((Evaluation{{kAccuracy, kError}, {0.5, kNaN}, 1}.is_finite()));
  const auto unknown = Evaluation::unknown({kAccuracy, kError});
  EXPECT_EQ(unknown.values.size(), 2u);
  EXPECT_FALSE(unknown.is_finite());
  EXPECT_EQ(unknown.samples, 0u);
}

}  // namespace
}  // namespace capstan::metrics
