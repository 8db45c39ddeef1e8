// Exactly-once pushes on one server: which pushes are new, repeated or invalid.

#include "capstan/server/push_staging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace capstan::server {
namespace {

using ::testing::HasSubstr;
using Action = transport::Placement::Action;

// The last elements of the first tensor and the first of the second.
constexpr Range kShard{14, 18};
constexpr std::size_t kBytes = 4 * sizeof(float);
constexpr WorkerId kWorker{1};

wire::Push push(std::uint64_t sequence, std::uint64_t incarnation = 7, std::uint32_t worker = 1) {
  wire::Push p;
  p.worker = {worker};
  p.incarnation = {incarnation};
  p.sequence = {sequence};
  return p;
}

FlatLayout two_tensors() {
  return FlatLayout({{"d.w", {16}}, {"g.w", {16}}});
}

ParameterGroups one_group() {
  return {two_tensors(), {}};
}

ParameterGroups two_groups() {
  return {two_tensors(), {.strategies = {"g.w"}}};
}

transport::Placement placed(PushStaging& staging, const wire::Push& p, std::size_t bytes) {
  const auto placement = staging.place(kWorker, p, bytes);
  EXPECT_TRUE(placement) << placement.status().message();
  return placement ? *placement : transport::Placement::refuse();
}

class Staging : public ::testing::Test {
 protected:
  PushStaging staging_{kShard, two_tensors(), two_groups()};

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
  EXPECT_EQ(placed(staging_, push(1), kBytes).action, Action::kReceive);
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
  EXPECT_EQ(placed(staging_, push(1), kBytes).action, Action::kDiscard) << "its gradient has been received";
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
  EXPECT_FALSE(staging_.place(kWorker, with_steps(1, kMost + 1), kBytes));
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
  EXPECT_THAT(error(push(1), 3), "a push with a payload of 3 bytes where phase 0 has 16");
  EXPECT_FALSE(staging_.place(kWorker, push(1), kBytes + 1));
  EXPECT_FALSE(staging_.place(kWorker, push(2), kBytes));
  EXPECT_FALSE(staging_.place({0}, push(1, 7, 0), kBytes)) << "an unknown worker";
  EXPECT_FALSE(staging_.held(kWorker, {1}, 0)) << "none of these was taken";
}

TEST(StagingBefore, ThereAreWeightsNoPushIsLegal) {
  PushStaging staging(kShard, two_tensors(), one_group());
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
  PushStaging staging(kShard, two_tensors(), two_groups(), {{kWorker, {7}, {3}, 0}, {kWorker, {7}, {2}, 1}});
  staging.open();
  staging.join(kWorker, {7});
  EXPECT_FALSE(*staging.stage(kWorker, push(2), kBytes) && staging.held(kWorker, {2}, 1));
  EXPECT_TRUE(*staging.stage(kWorker, push(3), kBytes));
  EXPECT_FALSE(staging.held(kWorker, {3}, 0)) << "part of the checkpoint's weights";
  EXPECT_TRUE(staging.held(kWorker, {3}, 1));
}

// ---- phases ----

// Group 0 is of the last phase. Each phase has a half of the shard.
constexpr std::size_t kHalf = kBytes / 2;
ParameterGroups two_phases() {
  return {two_tensors(), {.phases = {{"d", {"d.*"}}, {"g", {"g.*"}}}}};
}

wire::Push push_of_phase(std::uint64_t sequence, std::uint32_t phase) {
  auto p = push(sequence);
  p.phase = phase;
  return p;
}

class StagingOfPhases : public ::testing::Test {
 protected:
  PushStaging staging_{kShard, two_tensors(), two_phases()};

  void SetUp() override {
    staging_.open();
    staging_.join(kWorker, {7});
  }
  std::string error(std::uint64_t sequence, std::uint32_t phase) {
    return staging_.stage(kWorker, push_of_phase(sequence, phase), kHalf).status().message();
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
  EXPECT_FALSE(staging_.place(kWorker, push_of_phase(1, 1), kHalf));
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
  EXPECT_TRUE(staging_.stage(kWorker, first, kHalf)) << "a new process begins with phase 0";
}

TEST_F(StagingOfPhases, PlacesThePartOfEach) {
  const auto* shard = std::as_bytes(staging_.arena(kWorker)->gradients()).data();
  const auto first = placed(staging_, push_of_phase(1, 0), kHalf).destination;
  EXPECT_EQ(first.data() - shard, 0);
  EXPECT_EQ(first.size(), kHalf);
  ASSERT_EQ(error(1, 0), "");
  staging_.settle(kWorker, {1}, 1);
  const auto second = placed(staging_, push_of_phase(2, 1), kHalf).destination;
  EXPECT_EQ(second.data() - shard, std::ptrdiff_t{kHalf});
  EXPECT_EQ(second.size(), kHalf);
}

// A shard may have nothing of a phase.
TEST(StagingOfPartsOfPhases, HaveTheirOwnSizes) {
  PushStaging staging({2, 6}, two_tensors(), two_phases());
  staging.open();
  staging.join(kWorker, {7});
  const auto error = [&](std::uint64_t sequence, std::uint32_t phase, std::size_t bytes) {
    const auto p = push_of_phase(sequence, phase);
    const auto staged = staging.stage(kWorker, p, bytes).status().message();
    EXPECT_TRUE(bytes == 0 || staging.place(kWorker, p, bytes).status().message() == staged);
    return staged;
  };
  EXPECT_EQ(error(1, 0, 0), "a push with a payload of 0 bytes where phase 0 has 16");
  EXPECT_EQ(error(1, 0, 32), "a push with a payload of 32 bytes where phase 0 has 16");
  ASSERT_EQ(error(1, 0, 16), "");
  staging.settle(kWorker, {1}, 1);
  EXPECT_EQ(error(2, 1, 16), "a push with a payload of 16 bytes where phase 1 has 0");
  EXPECT_EQ(error(2, 1, 0), "");
  EXPECT_EQ(error(1, 1, 0), "a push of phase 1 where phase 0 is due") << "repeated, with another phase";
  EXPECT_EQ(error(1, 0, 0), "a push with a payload of 0 bytes where phase 0 has 16") << "repeated";
}

TEST(StagingAfterResume, ContinuesInTheMiddleOfAStep) {
  PushStaging staging(kShard, two_tensors(), two_phases(), {{kWorker, {7}, {5}, 0}, {kWorker, {7}, {5}, 1}});
  staging.open();
  staging.join(kWorker, {7});
  EXPECT_FALSE(staging.stage(kWorker, push_of_phase(6, 0), kHalf));
  EXPECT_TRUE(staging.stage(kWorker, push_of_phase(6, 1), kHalf));
}

}  // namespace
}  // namespace capstan::server
