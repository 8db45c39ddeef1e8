#include "capstan/optimizer/schedule.h"

#include <cmath>

#include <gmock/gmock.h>

#include "capstan/optimizer/optimizer.h"
#include "capstan/user_error.h"

namespace capstan::optimizer {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Schedule, ConstantIsOneEverywhere) {
  const auto s = Schedule::parse("constant", 0, 0);
  for (std::uint64_t v : {0u, 1u, 1000000u}) EXPECT_EQ(s.factor(v), 1);
}

TEST(Schedule, WarmupRisesToOneWithTheLastWarmupUpdate) {
  const auto s = Schedule::parse("constant", 4, 0);
  EXPECT_DOUBLE_EQ(s.factor(0), 0.25);
  EXPECT_DOUBLE_EQ(s.factor(1), 0.5);
  EXPECT_DOUBLE_EQ(s.factor(2), 0.75);
  EXPECT_DOUBLE_EQ(s.factor(3), 1);
  EXPECT_DOUBLE_EQ(s.factor(4), 1);
}

TEST(Schedule, StepMultipliesAfterEachPeriodCountedFromTheWarmup) {
  const auto s = Schedule::parse("step:10:0.5", 5, 0);
  EXPECT_DOUBLE_EQ(s.factor(0), 0.2);
  EXPECT_DOUBLE_EQ(s.factor(5), 1);
  EXPECT_DOUBLE_EQ(s.factor(14), 1);
  EXPECT_DOUBLE_EQ(s.factor(15), 0.5);
  EXPECT_DOUBLE_EQ(s.factor(24), 0.5);
  EXPECT_DOUBLE_EQ(s.factor(25), 0.25);
  EXPECT_DOUBLE_EQ(s.factor(105), std::pow(0.5, 10));
}

TEST(Schedule, CosineFallsFromOneToZero) {
  const auto s = Schedule::parse("cosine", 10, 110);
  EXPECT_DOUBLE_EQ(s.factor(4), 0.5);
  EXPECT_DOUBLE_EQ(s.factor(10), 1);
  EXPECT_NEAR(s.factor(35), (1 + std::sqrt(0.5)) / 2, 1e-12);
  EXPECT_NEAR(s.factor(60), 0.5, 1e-12);
  EXPECT_NEAR(s.factor(85), (1 - std::sqrt(0.5)) / 2, 1e-12);
  EXPECT_GT(s.factor(109), 0);
  EXPECT_EQ(s.factor(110), 0);
  EXPECT_EQ(s.factor(100000), 0);
}

TEST(Schedule, TextRoundTrips) {
  for (const char* text : {"constant", "cosine", "step:1000:0.1", "step:7:0.3333"}) {
    const auto s = Schedule::parse(text, 3, 50);
    EXPECT_EQ(s.text(), text);
    EXPECT_EQ(s.warmup, 3u);
    EXPECT_EQ(s.total, 50u);
  }
}

TEST(Schedule, WrongTextIsAnErrorWithTheAllowedForms) {
  for (const char* text : {"", "linear", "step", "step:", "step:10", "step:10:", "step::0.1", "step:0:0.1",
                           "step:-3:0.1", "step:1.5:0.1", "step:10:0", "step:10:-1", "step:10:nan",
                           "step:10:x", "step:10:0.1:2", "cosine:5", "Constant"}) {
    EXPECT_THAT([&] { Schedule::parse(text, 0, 100); },
                ThrowsMessage<UserError>(HasSubstr("step:EVERY:GAMMA (such as step:1000:0.1) or cosine")))
        << text;
  }
}

TEST(Schedule, CosineNeedsUpdatesAfterTheWarmup) {
  EXPECT_THAT([] { Schedule::parse("cosine", 10, 10); },
              ThrowsMessage<UserError>(HasSubstr("10 are warm-up")));
  EXPECT_NO_THROW(Schedule::parse("cosine", 10, 11));
}

TEST(Schedule, ScalesTheOptimizersLearningRate) {
  const Optimizer sgd({.lr = 0.4}, Schedule::parse("step:2:0.5", 2, 0));
  EXPECT_DOUBLE_EQ(sgd.learning_rate(Version{0}), 0.2);
  EXPECT_DOUBLE_EQ(sgd.learning_rate(Version{1}), 0.4);
  EXPECT_DOUBLE_EQ(sgd.learning_rate(Version{3}), 0.4);
  EXPECT_DOUBLE_EQ(sgd.learning_rate(Version{4}), 0.2);
}

}  // namespace
}  // namespace capstan::optimizer
