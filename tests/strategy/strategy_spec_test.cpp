#include "capstan/strategy/strategy_spec.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

namespace capstan::strategy {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(StrategySpec, IsOneStrategyOrASequence) {
  EXPECT_EQ(parse_strategy_spec("batch", 4).spelling(), "batch:4");
  const auto spec = parse_strategy_spec(strategy_spec_text("sync", "500=async,900=ssp"), 4);
  EXPECT_EQ(spec.spelling(), "sync;500=async;900=ssp:3");
  EXPECT_EQ(parse_strategy_spec(spec.spelling(), 4).spelling(), spec.spelling());
  EXPECT_EQ(strategy_spec_text("sync", ""), "sync");
}

TEST(StrategySpec, ReadsInPlaceOnlyIfEveryStrategyAllowsIt) {
  EXPECT_TRUE(parse_strategy_spec("sync;5=batch:4", 4).workers_idle_during_update());
  EXPECT_FALSE(parse_strategy_spec("sync;5=batch:3", 4).workers_idle_during_update());
  EXPECT_FALSE(parse_strategy_spec("async;5=sync", 4).workers_idle_during_update());
}

TEST(StrategySpec, KeepsTheStateThatAnyStrategyNeeds) {
  EXPECT_FALSE(parse_strategy_spec("sync;5=dc-asgd", 4).needs_mean_square());
  EXPECT_TRUE(parse_strategy_spec("sync;5=dc-asgd-a", 4).needs_mean_square());
}

// Sync of four workers takes four pushes per update, async one.
TEST(StrategySpec, CountsPushesAndUpdates) {
  const auto spec = parse_strategy_spec("sync;10=async", 4);
  EXPECT_EQ(spec.pushes({0}, {10}), 40u);
  EXPECT_EQ(spec.pushes({0}, {15}), 45u);
  EXPECT_EQ(spec.pushes({8}, {12}), 10u);
  EXPECT_EQ(spec.pushes({12}, {12}), 0u);
  EXPECT_EQ(spec.after({0}, 40).value, 10u);
  EXPECT_EQ(spec.after({0}, 45).value, 15u);
  EXPECT_EQ(spec.after({0}, 7).value, 2u);  // a partial update counts as one
  EXPECT_EQ(spec.after({8}, 10).value, 12u);
  EXPECT_EQ(spec.after({20}, 5).value, 25u);
}

TEST(StrategySpec, InvalidSwitchesAreErrors) {
  const std::pair<const char*, const char*> wrong[] = {
      {"sync;async", "must be STEP=STRATEGY, such as 500=async"},
      {"sync;=async", "must be STEP=STRATEGY"},
      {"sync;0=async", "must be STEP=STRATEGY"},
      {"sync;-5=async", "must be STEP=STRATEGY"},
      {"sync;5x=async", "must be STEP=STRATEGY"},
      {"sync;5=asink", "did you mean async?"},
      {"sync;5=batch:9", "at most 4"},
      {"sync;5=local-sgd", "local-sgd:10 uses local steps"},
      {"diloco;5=sync", "diloco:500 uses local steps"},
      {"sync;9=async;9=ssp", "must be at a later step than the switch before it, 9"},
  };
  for (const auto& [text, says] : wrong) {
    const auto parsed = [t = text] { (void)parse_strategy_spec(t, 4); };
    EXPECT_THAT(parsed, ThrowsMessage<UserError>(HasSubstr(says))) << text;
  }
}

// ---- groups ----

TEST(Groups, AreSpelledWithTheDefaultFirst) {
  EXPECT_EQ(parse_strategy_spec("default=sync,fc*.weight=async", 4).spelling(),
            "default=sync,fc*.weight=async");
  const auto spec = parse_strategy_spec("fc*=batch,conv?=ssp,default=dc-asgd", 4);
  EXPECT_EQ(spec.spelling(), "default=dc-asgd:0.04,fc*=batch:4,conv?=ssp:3");
  EXPECT_EQ(parse_strategy_spec(spec.spelling(), 4).spelling(), spec.spelling());
  EXPECT_EQ(spec.globs(), (std::vector<std::string>{"fc*", "conv?"}));
  EXPECT_EQ(parse_strategy_spec("default=sync", 4).spelling(), "sync")
      << "a default without groups is a plain strategy";
}

TEST(Groups, ThatAreInvalidAreErrors) {
  const std::pair<const char*, const char*> wrong[] = {
      {"fc*=async", "groups need a default"},
      {"sync,async", "group \"sync\" must be GLOB=STRATEGY, such as fc*.weight=async"},
      {"default=sync,", "group \"\" must be GLOB=STRATEGY"},
      {"default=sync,fc*", "group \"fc*\" must be GLOB=STRATEGY"},
      {"default=sync,=async", "group \"=async\" names no tensors"},
      {"default=sync,fc*=async,fc*=batch", "group fc* is given twice"},
      {"default=sync,default=async,fc*=batch", "group default is given twice"},
      {"default=sync,fc*=asink", "group fc*: unknown strategy \"asink\" (did you mean async?)"},
      {"default=sync,fc*=", "group fc*: unknown strategy"},
      {"default=sink,fc*=async", "group default: unknown strategy \"sink\" (did you mean sync?)"},
      {"default=sync,fc*=batch:9", "group fc*: batch:9 needs 9 workers, but the job has 4"},
      {"default=sync,fc*=single", "group fc*: single is for a whole model"},
      {"default=sync;5=async", "--switch 5=async: cannot be combined with groups"},
      {"default=sync,fc*=async;5=async;9=sync", "--switch 5=async;9=sync: cannot be combined with groups"},
  };
  for (const auto& [text, says] : wrong) {
    const auto parsed = [t = text] { (void)parse_strategy_spec(t, 4); };
    EXPECT_THAT(parsed, ThrowsMessage<UserError>(HasSubstr(says))) << text;
  }
  for (const char* whole : {"easgd", "local-sgd", "diloco:9", "decoupled-diloco", "fedavg", "fedbuff"}) {
    for (const char* form : {"default=sync,fc*={}", "fc*=async,default={}"}) {
      const auto text = fmt::format(fmt::runtime(form), whole);
      const auto parsed = [&] { (void)parse_strategy_spec(text, 4); };
      EXPECT_THAT(parsed, ThrowsMessage<UserError>(HasSubstr(fmt::format("{} is for a whole model", whole))))
          << text;
    }
  }
}

TEST(Groups, AreReadInPlaceOnlyIfAllStrategiesAllowIt) {
  EXPECT_TRUE(parse_strategy_spec("default=sync,x=batch:4,y=backup:0", 4).workers_idle_during_update());
  EXPECT_FALSE(parse_strategy_spec("default=sync,x=async", 4).workers_idle_during_update());
  EXPECT_FALSE(parse_strategy_spec("default=async,x=sync", 4).workers_idle_during_update());
}

TEST(Groups, KeepTheStateThatAnyNeedsAndCountAsTheDefault) {
  EXPECT_FALSE(parse_strategy_spec("default=sync,x=dc-asgd", 4).needs_mean_square());
  EXPECT_TRUE(parse_strategy_spec("default=sync,x=dc-asgd-a", 4).needs_mean_square());
  EXPECT_TRUE(parse_strategy_spec("default=dc-asgd-a,x=sync", 4).needs_mean_square());
  const auto spec = parse_strategy_spec("default=sync,x=async,y=batch:3", 4);
  EXPECT_EQ(spec.pushes({0}, {10}), 40u);
  EXPECT_EQ(spec.after({0}, 40).value, 10u);
  EXPECT_EQ(spec.least_pushes_per_update(), 1u);
  EXPECT_EQ(parse_strategy_spec("default=sync,y=batch:3", 4).least_pushes_per_update(), 3u);
  EXPECT_EQ(parse_strategy_spec("default=batch:2,y=sync", 4).least_pushes_per_update(), 2u);
}

TEST(Phases, NeedBackupForAllTensorsOrForNone) {
  const ParameterGroups two(FlatLayout({{"d", {3}}, {"g", {3}}}), {.phases = {{"d", {"d"}}, {"g", {"g"}}}});
  for (const char* right : {"sync", "async", "backup:1", "default=backup:1,g=backup:2", "default=sync,g=ssp"})
    EXPECT_NO_THROW(parse_strategy_spec(right, 4).check_phases(two)) << right;
  for (const char* wrong : {"default=sync,g=backup:1", "default=backup:1,g=sync", "sync;5=backup:1"}) {
    const auto check = [&] { parse_strategy_spec(wrong, 4).check_phases(two); };
    EXPECT_THAT(check, ThrowsMessage<UserError>(
                           HasSubstr("a step of 2 phases needs backup:1 for all tensors, or for none")))
        << wrong;
    EXPECT_NO_THROW(parse_strategy_spec(wrong, 4).check_phases({})) << "one phase";
  }
}

}  // namespace
}  // namespace capstan::strategy
