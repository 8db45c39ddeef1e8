#include "capstan/strategy/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/base/user_error.h"

namespace capstan::strategy {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Plan, IsOneStrategyOrSeveralInTurn) {
  EXPECT_EQ(parse_plan("batch", 4).spelling(), "batch:4");
  const auto plan = parse_plan(plan_text("sync", "500=async,900=ssp"), 4);
  EXPECT_EQ(plan.spelling(), "sync;500=async;900=ssp:3");
  EXPECT_EQ(parse_plan(plan.spelling(), 4).spelling(), plan.spelling());
  EXPECT_EQ(plan_text("sync", ""), "sync");
}

TEST(Plan, ReadsInPlaceOnlyWhereEveryStrategyDoes) {
  EXPECT_TRUE(parse_plan("sync;5=batch:4", 4).parks_all());
  EXPECT_FALSE(parse_plan("sync;5=batch:3", 4).parks_all());
  EXPECT_FALSE(parse_plan("async;5=sync", 4).parks_all());
}

TEST(Plan, KeepsWhatAnyOfItsStrategiesNeeds) {
  EXPECT_FALSE(parse_plan("sync;5=dc-asgd", 4).needs_mean_square());
  EXPECT_TRUE(parse_plan("sync;5=dc-asgd-a", 4).needs_mean_square());
}

// Sync of four workers takes four pushes an update, async one.
TEST(Plan, CountsPushesAndUpdates) {
  const auto plan = parse_plan("sync;10=async", 4);
  EXPECT_EQ(plan.pushes({0}, {10}), 40u);
  EXPECT_EQ(plan.pushes({0}, {15}), 45u);
  EXPECT_EQ(plan.pushes({8}, {12}), 10u);
  EXPECT_EQ(plan.pushes({12}, {12}), 0u);
  EXPECT_EQ(plan.after({0}, 40).value, 10u);
  EXPECT_EQ(plan.after({0}, 45).value, 15u);
  EXPECT_EQ(plan.after({0}, 7).value, 2u);  // begun is done
  EXPECT_EQ(plan.after({8}, 10).value, 12u);
  EXPECT_EQ(plan.after({20}, 5).value, 25u);
}

TEST(Plan, ChangesThatMakeNoSenseAreSaid) {
  const std::pair<const char*, const char*> wrong[] = {
      {"sync;async", "must be STEP=STRATEGY, such as 500=async"},
      {"sync;=async", "must be STEP=STRATEGY"},
      {"sync;0=async", "must be STEP=STRATEGY"},
      {"sync;-5=async", "must be STEP=STRATEGY"},
      {"sync;5x=async", "must be STEP=STRATEGY"},
      {"sync;5=asink", "did you mean async?"},
      {"sync;5=batch:9", "at most 4"},
      {"sync;5=local-sgd", "with local-sgd:10 workers train by themselves"},
      {"diloco;5=sync", "with diloco:500 workers train by themselves"},
      {"sync;9=async;9=ssp", "the change before it is at step 9"},
  };
  for (const auto& [text, says] : wrong) {
    const auto parsed = [t = text] { (void)parse_plan(t, 4); };
    EXPECT_THAT(parsed, ThrowsMessage<UserError>(HasSubstr(says))) << text;
  }
}

}  // namespace
}  // namespace capstan::strategy
