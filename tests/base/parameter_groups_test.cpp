#include "capstan/base/parameter_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

namespace capstan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StrEq;
using ::testing::ThrowsMessage;
using Globs = std::vector<std::string>;
using Of = std::vector<std::uint32_t>;

FlatLayout layout(const Globs& names) {
  std::vector<TensorShape> tensors;
  for (const auto& name : names) tensors.push_back({name, {3}});
  return FlatLayout(std::move(tensors));
}

const FlatLayout kFive = layout({"conv1.weight", "conv1.bias", "fc1.weight", "fc1.bias", "fc12.weight"});
const FlatLayout kGan = layout({"g.in.weight", "g.out.weight", "d.in.weight", "d.out.weight", "d.out.bias"});
const std::vector<StepPhase> kDThenG = {{"discriminator", {"d.*"}}, {"generator", {"g.*"}}};

TEST(ParameterGroups, TakeTheTensorsTheyMatchFirst) {
  const std::pair<Globs, Of> tables[] = {
      {{"fc*.weight"}, {0, 0, 1, 0, 1}},          {{"fc?.weight"}, {0, 0, 1, 0, 0}},
      {{"fc1*", "*.weight"}, {2, 0, 1, 1, 1}},    {{"*.weight", "fc1*"}, {1, 0, 1, 2, 1}},
      {{"*1*.*weigh*t"}, {1, 0, 1, 0, 1}},        {{"fc1.bias"}, {0, 0, 0, 1, 0}},
      {{"f?1.b*", "?onv?.w*t"}, {2, 0, 0, 1, 0}}, {{}, {0, 0, 0, 0, 0}},
  };
  for (const auto& [globs, of] : tables) {
    SCOPED_TRACE(::testing::PrintToString(globs));
    EXPECT_EQ(ParameterGroups(kFive, {.strategies = globs}).of_tensors(), of);
    EXPECT_EQ(ParameterGroups(kFive, {.optimizers = globs}).of_tensors(), of);
  }
}

TEST(ParameterGroups, WithoutTensorsAreErrors) {
  const auto three = layout({"conv1.weight", "fc1.weight", "fc1.bias"});
  const std::pair<Globs, const char*> wrong[] = {
      {{"gc*"}, "group gc* matches no tensor of this model"},
      {{"fc1"}, "group fc1 matches no tensor of this model"},
      {{"fc1.weigh?t"}, "group fc1.weigh?t matches no tensor of this model"},
      {{"FC1*"}, "group FC1* matches no tensor of this model"},
      {{"fc*", "*.bias"}, "group *.bias is left without tensors: groups before it take all it matches"},
      {{"fc*", "conv*"}, "the default is left without tensors: the groups take all; leave one group out"},
      {{"*"}, "the default is left without tensors: the groups take all; leave one group out"},
  };
  for (const auto& [globs, says] : wrong) {
    EXPECT_THAT([&] { ParameterGroups(three, {.strategies = globs}); },
                ThrowsMessage<UserError>(StrEq(std::string("--strategy: ") + says)));
    EXPECT_THAT([&] { ParameterGroups(three, {.optimizers = globs}); },
                ThrowsMessage<UserError>(StrEq(std::string("--optimizer: ") + says)));
  }
}

TEST(ParameterGroups, AreOneByDefault) {
  const ParameterGroups one;
  EXPECT_THAT(one.names(), ElementsAre("default"));
  EXPECT_EQ(one.phases(), 1u);
  EXPECT_THAT(ParameterGroups(kFive, {}).names(), ElementsAre("default"));
  EXPECT_THAT(ParameterGroups(kGan, {.phases = {{"all", {"x"}}}}).names(), ElementsAre("default"))
      << "one phase has all tensors";
}

TEST(ParameterGroups, BeginWithTheLastPhase) {
  const ParameterGroups groups(kGan, {.phases = kDThenG});
  EXPECT_EQ(groups.of_tensors(), (Of{0, 0, 1, 1, 1}));
  EXPECT_THAT(groups.names(), ElementsAre("phase generator", "phase discriminator"));
  EXPECT_EQ(groups[0].phase, 1u);
  EXPECT_EQ(groups[1].phase, 0u);
  const ParameterGroups three(layout({"a", "b", "c"}),
                              {.phases = {{"x", {"c"}}, {"y", {"a"}}, {"z", {"*"}}}});
  EXPECT_EQ(three.of_tensors(), (Of{2, 0, 1})) << "the first glob that matches decides";
  EXPECT_THAT(three.names(), ElementsAre("phase z", "phase x", "phase y"));
}

TEST(ParameterGroups, CombinePhasesStrategiesAndOptimizers) {
  const ParameterGroups groups(
      kGan, {.strategies = {"*.out.*"}, .optimizers = {"*.bias", "d.*"}, .phases = kDThenG});
  EXPECT_EQ(groups.of_tensors(), (Of{0, 1, 2, 4, 3}));
  EXPECT_THAT(groups.names(), ElementsAre("phase generator, strategy default, optimizer default",
                                          "phase generator, strategy *.out.*, optimizer default",
                                          "phase discriminator, strategy default, optimizer d.*",
                                          "phase discriminator, strategy *.out.*, optimizer *.bias",
                                          "phase discriminator, strategy *.out.*, optimizer d.*"));
  EXPECT_EQ(groups[3], (ParameterGroup{groups[3].name, 0, 1, 1}));
  EXPECT_EQ(groups[4], (ParameterGroup{groups[4].name, 0, 1, 2}));
}

TEST(ParameterGroups, KeepTheNamesOfStrategiesInFiles) {
  EXPECT_THAT(ParameterGroups(kFive, {.strategies = {"fc*", "*.bias"}}).names(),
              ElementsAre("default", "fc*", "*.bias"));
  EXPECT_THAT(ParameterGroups(kFive, {.optimizers = {"fc*"}}).names(),
              ElementsAre("optimizer default", "optimizer fc*"));
}

TEST(ParameterGroups, NeedANameForEachPhase) {
  const auto made = [](const std::string& first, const std::string& second) {
    return [=] { ParameterGroups(kGan, {.phases = {{first, {"d.*"}}, {second, {"g.*"}}}}); };
  };
  EXPECT_NO_THROW(made("d", "g")());
  EXPECT_THAT(made("d", "d"),
              ThrowsMessage<UserError>(StrEq("two phases of a step are named d: give each its own name")));
  EXPECT_THAT(made("d", ""),
              ThrowsMessage<UserError>(StrEq("a phase of a step has no name: give each its own")));
}

TEST(ParameterGroups, NeedAPhaseForEachTensorAndATensorForEachPhase) {
  EXPECT_THAT(
      [] {
        ParameterGroups(kGan, {.phases = {{"d", {"d.*"}}, {"g", {"g.in*"}}}});
      },
      ThrowsMessage<UserError>(
          StrEq("tensor g.out.weight is in no phase of a step: the phases are d (d.*), g (g.in*)")));
  EXPECT_THAT(
      [] {
        ParameterGroups(kGan, {.phases = {{"d", {"*"}}, {"g", {"g.*"}}}});
      },
      ThrowsMessage<UserError>(HasSubstr("phase g of a step is left without tensors of this model")));
}

TEST(ParameterGroups, KnowThePhaseOfAPush) {
  const ParameterGroups groups(kGan, {.phases = kDThenG});
  EXPECT_EQ(groups.phase_of(1), 0u);
  EXPECT_EQ(groups.phase_of(2), 1u);
  EXPECT_EQ(groups.phase_of(3), 0u);
  EXPECT_TRUE(groups.ends_step(0));
  EXPECT_FALSE(groups.ends_step(1));
  EXPECT_TRUE(groups.ends_step(2));
  EXPECT_TRUE(ParameterGroups().ends_step(1));
}

TEST(StepPhases, DifferByTheFirstThatDiffers) {
  EXPECT_EQ(difference(kDThenG, kDThenG), "");
  EXPECT_EQ(difference({}, kDThenG), "0 phases of a step here and 2 there");
  auto other = kDThenG;
  other[1].globs = {"g.in*", "g.out*"};
  EXPECT_EQ(difference(kDThenG, other),
            "phase 1 of a step is generator (g.*) here and generator (g.in*, g.out*) there");
}

}  // namespace
}  // namespace capstan
