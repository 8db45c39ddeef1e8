// Exactly-once pushes on one server: which pushes are new, repeated or invalid.

#include "capstan/server/push_staging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace capstan::server {
namespace {

using ::testing::HasSubstr;
using Action = transport::Placement::Action;

constexpr Range kShard{2, 6};
constexpr std::size_t kBytes = 4 * sizeof(float);
constexpr WorkerId kWorker{1};

wire::Push push(std::uint64_t sequence, std::uint64_t incarnation = 7, std::uint32_t worker = 1) {
  wire::Push p;
  p.worker = {worker};
  p.incarnation = {incarnation};
  p.sequence = {sequence};
  return p;
}

ParameterGroups two_groups() {
  return {FlatLayout({{"a", {4}}, {"b", {4}}}), {.strategies = {"b"}}};
}

class Staging : public ::testing::Test {
 protected:
  PushStaging staging_{kShard, 8, two_groups()};

  void SetUp() override {
    staging_.open();
    staging_.join(kWorker, {7});
  }
  std::string error(const wire::Push& p, std::size_t bytes = kBytes) {
    return staging_.stage(kWorker, p, bytes).status().message();
  }
  void settle(std::uint64_t sequence) {
    for (std::uint32_t group : {0u, 1u}) staging_.settle(kWorker, {sequence}, group);
  }
};

TEST_F(Staging, TakesPushesInTurn) {
  EXPECT_EQ(staging_.place(kWorker, push(1), kBytes).action, Action::kReceive);
  EXPECT_TRUE(*staging_.stage(kWorker, push(1), kBytes));
  EXPECT_TRUE(staging_.held(kWorker, {1}, 0));
  EXPECT_FALSE(staging_.held(kWorker, {2}, 0));
  settle(1);
  EXPECT_TRUE(*staging_.stage(kWorker, push(2), kBytes));
}

TEST_F(Staging, IsFreeOnceEveryGroupHasHadThePush) {
  ASSERT_TRUE(staging_.stage(kWorker, push(1), kBytes));
  staging_.settle(kWorker, {1}, 0);
  EXPECT_FALSE(staging_.held(kWorker, {1}, 0)) << "the first group has processed it";
  EXPECT_TRUE(staging_.held(kWorker, {1}, 1));
  EXPECT_THAT(error(push(2)), HasSubstr("before the previous one was answered"));
  staging_.settle(kWorker, {1}, 1);
  EXPECT_EQ(error(push(2)), "");
}

TEST_F(Staging, ARepeatedPushIsAnnouncedOncePerConnection) {
  ASSERT_TRUE(*staging_.stage(kWorker, push(1), kBytes));
  EXPECT_FALSE(*staging_.stage(kWorker, push(1), kBytes));
  EXPECT_EQ(staging_.place(kWorker, push(1), kBytes).action, Action::kDiscard)
      << "its gradient has been received";
  EXPECT_FALSE(staging_.join(kWorker, {7})) << "the same process, after a reconnect";
  EXPECT_TRUE(*staging_.stage(kWorker, push(1), kBytes));
  EXPECT_FALSE(*staging_.stage(kWorker, push(1), kBytes));
}

// A checkpoint records the steps.
TEST_F(Staging, StepsDoNotDecreaseOrJump) {
  const auto with_steps = [](std::uint64_t sequence, std::uint64_t steps) {
    auto p = push(sequence);
    p.steps = {steps};
    return p;
  };
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
  EXPECT_THAT(error(with_steps(1, std::numeric_limits<std::uint64_t>::max())), HasSubstr("steps"));
  EXPECT_THAT(error(with_steps(1, kMost + 1)), HasSubstr("steps"));
  EXPECT_EQ(staging_.place(kWorker, with_steps(1, kMost + 1), kBytes).action, Action::kRefuse);
  EXPECT_EQ(error(with_steps(1, kMost)), "");
  settle(1);
  EXPECT_THAT(error(with_steps(2, kMost - 1)), HasSubstr("steps"));
  EXPECT_THAT(error(with_steps(2, 2 * kMost + 1)), HasSubstr("steps"));
  EXPECT_EQ(error(with_steps(2, kMost)), "");
}

TEST_F(Staging, RefusesWhatIsIllegal) {
  EXPECT_THAT(error(push(1, 7, 0)), HasSubstr("another worker's rank"));
  EXPECT_THAT(error(push(1, 8)), HasSubstr("another incarnation"));
  EXPECT_THAT(error(push(2)), HasSubstr("out of order"));
  EXPECT_THAT(error(push(1), 3), HasSubstr("wrong size"));
  EXPECT_EQ(staging_.place(kWorker, push(1), kBytes + 1).action, Action::kRefuse);
  EXPECT_EQ(staging_.place(kWorker, push(2), kBytes).action, Action::kRefuse);
  EXPECT_EQ(staging_.place({0}, push(1, 7, 0), kBytes).action, Action::kRefuse) << "an unknown worker";
  EXPECT_FALSE(staging_.held(kWorker, {1}, 0)) << "none of these was taken";
}

TEST(StagingBefore, ThereAreWeightsNoPushIsLegal) {
  PushStaging staging(kShard, 8, {});
  staging.join(kWorker, {7});
  EXPECT_THAT(staging.stage(kWorker, push(1), kBytes).status().message(),
              HasSubstr("before there are weights"));
}

TEST_F(Staging, ANewProcessBeginsAnew) {
  ASSERT_TRUE(staging_.stage(kWorker, push(1), kBytes));
  EXPECT_TRUE(staging_.join(kWorker, {9}));
  EXPECT_FALSE(staging_.held(kWorker, {1}, 0));
  EXPECT_TRUE(*staging_.stage(kWorker, push(1, 9), kBytes));
  staging_.forget(kWorker, {7});
  EXPECT_TRUE(staging_.held(kWorker, {1}, 0)) << "a late message about the previous process";
  staging_.forget(kWorker, {9});
  EXPECT_FALSE(staging_.arena(kWorker));
}

TEST(StagingAfterResume, AsksAgainForWhatAGroupLacks) {
  PushStaging staging(kShard, 8, two_groups(), {{kWorker, {7}, {3}, 0}, {kWorker, {7}, {2}, 1}});
  staging.open();
  staging.join(kWorker, {7});
  EXPECT_FALSE(*staging.stage(kWorker, push(2), kBytes) && staging.held(kWorker, {2}, 1));
  EXPECT_TRUE(*staging.stage(kWorker, push(3), kBytes));
  EXPECT_FALSE(staging.held(kWorker, {3}, 0)) << "part of the checkpoint's weights";
  EXPECT_TRUE(staging.held(kWorker, {3}, 1));
}

// ---- phases ----

// Group 0 is of the last phase.
ParameterGroups two_phases() {
  return {FlatLayout({{"d.w", {4}}, {"g.w", {4}}}), {.phases = {{"d", {"d.*"}}, {"g", {"g.*"}}}}};
}

wire::Push push_of_phase(std::uint64_t sequence, std::uint32_t phase) {
  auto p = push(sequence);
  p.phase = phase;
  return p;
}

class StagingOfPhases : public ::testing::Test {
 protected:
  PushStaging staging_{kShard, 8, two_phases()};

  void SetUp() override {
    staging_.open();
    staging_.join(kWorker, {7});
  }
  std::string error(std::uint64_t sequence, std::uint32_t phase) {
    return staging_.stage(kWorker, push_of_phase(sequence, phase), kBytes).status().message();
  }
};

TEST_F(StagingOfPhases, WaitsOnlyForTheGroupsOfThePhase) {
  EXPECT_EQ(error(1, 0), "");
  EXPECT_TRUE(staging_.held(kWorker, {1}, 1));
  EXPECT_FALSE(staging_.held(kWorker, {1}, 0)) << "of the other phase";
  EXPECT_THAT(error(2, 1), HasSubstr("before the previous one was answered"));
  staging_.settle(kWorker, {1}, 1);
  EXPECT_EQ(error(2, 1), "");
  EXPECT_TRUE(staging_.held(kWorker, {2}, 0));
  EXPECT_FALSE(staging_.held(kWorker, {2}, 1));
}

TEST_F(StagingOfPhases, TakesThemInOrder) {
  EXPECT_EQ(error(1, 1), "a push of phase 1 where phase 0 is due") << "a process begins with phase 0";
  EXPECT_EQ(error(1, 2), "a push of phase 2 where phase 0 is due");
  EXPECT_EQ(staging_.place(kWorker, push_of_phase(1, 1), kBytes).action, Action::kRefuse);
  ASSERT_EQ(error(1, 0), "");
  staging_.settle(kWorker, {1}, 1);
  EXPECT_EQ(error(2, 0), "a push of phase 0 where phase 1 is due");
  ASSERT_EQ(error(2, 1), "");
  staging_.settle(kWorker, {2}, 0);
  EXPECT_EQ(error(3, 1), "a push of phase 1 where phase 0 is due");
  EXPECT_EQ(error(3, 0), "");
  staging_.join(kWorker, {7});
  EXPECT_EQ(error(3, 0), "") << "repeated after a reconnect";
  staging_.join(kWorker, {8});
  auto first = push_of_phase(1, 0);
  first.incarnation = {8};
  EXPECT_TRUE(staging_.stage(kWorker, first, kBytes)) << "a new process begins with phase 0";
}

TEST(StagingAfterResume, ContinuesInTheMiddleOfAStep) {
  PushStaging staging(kShard, 8, two_phases(), {{kWorker, {7}, {5}, 0}, {kWorker, {7}, {5}, 1}});
  staging.open();
  staging.join(kWorker, {7});
  EXPECT_FALSE(staging.stage(kWorker, push_of_phase(6, 0), kBytes));
  EXPECT_TRUE(staging.stage(kWorker, push_of_phase(6, 1), kBytes));
}

}  // namespace
}  // namespace capstan::server
