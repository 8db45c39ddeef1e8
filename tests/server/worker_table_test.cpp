// Ranks of workers, and the allowed transitions of their phases and those of a server.

#include "capstan/server/worker_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/checkpoint/checkpointer.h"
#include "capstan/server/loss_window.h"
#include "capstan/server/phase.h"

namespace capstan::server {
namespace {

using ::testing::HasSubstr;

// Every pair of states against a list written by hand.
template <class State>
void expect_exactly(std::vector<std::pair<State, State>> allowed, State last) {
  for (int from = 0; from <= static_cast<int>(last); ++from) {
    for (int to = 0; to <= static_cast<int>(last); ++to) {
      const auto pair = std::pair(static_cast<State>(from), static_cast<State>(to));
      const bool expected = std::ranges::find(allowed, pair) != allowed.end();
      EXPECT_EQ(may_follow(pair.first, pair.second), expected) << from << " to " << to;
    }
  }
}

TEST(Transitions, OfAWorker) {
  using enum WorkerPhase;
  expect_exactly<WorkerPhase>({{kAbsent, kJoined},
                               {kAbsent, kLost},
                               {kJoined, kReady},
                               {kJoined, kLeft},
                               {kJoined, kLost},
                               {kReady, kTraining},
                               {kReady, kLeft},
                               {kReady, kLost},
                               {kTraining, kLeft},
                               {kTraining, kLost},
                               {kLost, kJoined}},
                              kLost);
}

TEST(Transitions, OfACheckpoint) {
  using enum checkpoint::CheckpointState;
  expect_exactly<checkpoint::CheckpointState>({{kIdle, kCollectingBuffers},
                                               {kCollectingBuffers, kWriting},
                                               {kCollectingBuffers, kRemoving},
                                               {kWriting, kPublishing},
                                               {kWriting, kRemoving},
                                               {kPublishing, kIdle},
                                               {kPublishing, kRemoving},
                                               {kRemoving, kIdle}},
                                              kRemoving);
}

TEST(Transitions, OfAServer) {
  using enum Phase;
  std::vector<std::pair<Phase, Phase>> allowed = {
      {kStarting, kSeekingLeader},          {kStarting, kAwaitingModel},
      {kSeekingLeader, kLoadingCheckpoint}, {kSeekingLeader, kAwaitingModel},
      {kAwaitingModel, kLoadingCheckpoint}, {kAwaitingModel, kAwaitingWeights},
      {kAwaitingWeights, kServing},         {kLoadingCheckpoint, kServing}};
  // A job may end at any time; the phases at its end follow in order.
  for (const auto from : {kLoadingCheckpoint, kAwaitingModel, kAwaitingWeights, kServing})
    for (const auto to : {kSavingLast, kAwaitingObservers, kDraining}) allowed.emplace_back(from, to);
  allowed.insert(
      allowed.end(),
      {{kSavingLast, kAwaitingObservers}, {kSavingLast, kDraining}, {kAwaitingObservers, kDraining}});
  for (int from = static_cast<int>(kSeekingLeader); from < static_cast<int>(kEnded); ++from)
    allowed.emplace_back(static_cast<Phase>(from), kEnded);
  expect_exactly<Phase>(allowed, kEnded);
}

TEST(Lifecycle, EndsOnceTheLastOrderIsExecuted) {
  bool idle = false;
  std::vector<Outcome> ends;
  Lifecycle history([&] { return idle; }, [&](Outcome o) { ends.push_back(o); });
  EXPECT_EQ(history.phase(), Phase::kStarting);
  history.enter(Phase::kAwaitingModel);
  EXPECT_TRUE(history.is_open());
  history.settle();
  EXPECT_EQ(history.phase(), Phase::kAwaitingModel) << "settle() has an effect only while draining";
  history.drain(Outcome::kAllWorkersLost);
  EXPECT_EQ(history.phase(), Phase::kDraining);
  EXPECT_EQ(history.outcome(), Outcome::kRunning);
  EXPECT_FALSE(history.is_open());
  idle = true;
  history.settle();
  EXPECT_EQ(history.outcome(), Outcome::kAllWorkersLost);
  history.end(Outcome::kLeaderLost);
  EXPECT_EQ(history.outcome(), Outcome::kAllWorkersLost) << "the first end counts";
  EXPECT_THAT(ends, ::testing::ElementsAre(Outcome::kAllWorkersLost));
}

TEST(Places, AreTheRankAskedForOrTheLowestFreeOne) {
  WorkerTable table(3, 1);
  EXPECT_EQ(table.admit(1, {11})->value, 1u);
  EXPECT_EQ(table.admit({}, {12})->value, 0u);
  EXPECT_EQ(table.admit({}, {12})->value, 0u) << "it repeats its request because the answer was lost";
  EXPECT_EQ(table.admit({}, {13})->value, 2u);
  EXPECT_THAT(table.admit({}, {14}).status().message(), HasSubstr("3 workers, and all ranks are taken"));
  EXPECT_THAT(table.admit(3, {14}).status().message(), HasSubstr("worker 3 does not exist"));
  EXPECT_THAT(table.admit(1, {14}).status().message(), HasSubstr("worker 1 has already joined"));
}

TEST(Places, OfLostWorkersAreGivenToNewcomers) {
  WorkerTable table(2, 1);
  ASSERT_TRUE(table.admit(0, {1}));
  ASSERT_TRUE(table.admit(1, {2}));
  table[{1}].applied = {40};
  table[{1}].enter(WorkerPhase::kLost);
  EXPECT_THAT(table.admit(1, {2}).status().message(), HasSubstr("declared this worker lost"));
  EXPECT_EQ(table.admit({}, {3})->value, 1u);
  EXPECT_EQ(table[{1}].applied, StepCount{40}) << "with its predecessor's part of the data";
  EXPECT_EQ(table[{1}].phase, WorkerPhase::kJoined);
  table[{0}].enter(WorkerPhase::kLeft);
  EXPECT_THAT(table.admit(0, {4}).status().message(), HasSubstr("has finished its part"));
  EXPECT_THAT(table.admit({}, {4}).status().message(), HasSubstr("all ranks are taken"));
}

TEST(Places, MarksOfACheckpointBelongToOneIncarnation) {
  WorkerTable table(1, 2);
  table.resume({{{0}, {7}, {5}, 0}, {{0}, {7}, {4}, 1}});
  ASSERT_TRUE(table.admit(0, {7}));
  EXPECT_EQ(table[{0}].push.sequence, Sequence{4}) << "the fifth comes again, for the second group";
  EXPECT_EQ(table[{0}].push_state, PushState::kCounted);
  EXPECT_EQ(table.marks(), (std::vector<checkpoint::HighWaterMark>{{{0}, {7}, {5}, 0}, {{0}, {7}, {4}, 1}}));
  table[{0}].enter(WorkerPhase::kLost);
  ASSERT_TRUE(table.admit(0, {8}));
  EXPECT_EQ(table[{0}].push.sequence, Sequence{}) << "a new process counts from the start";
  EXPECT_TRUE(table.marks().empty());
}

TEST(LossWindow, IsTheMeanOverTheSamplesOfTheLastUpdates) {
  LossWindow window(2);
  EXPECT_TRUE(std::isnan(window.mean()));
  const auto push = [](float loss, std::uint32_t samples) {
    wire::Push p;
    p.loss = loss;
    p.samples = samples;
    return p;
  };
  window.add(push(8, 10));
  EXPECT_TRUE(std::isnan(window.mean())) << "not part of an update yet";
  window.add(push(2, 30));
  window.close_update();
  EXPECT_DOUBLE_EQ(window.mean(), (8 * 10 + 2 * 30) / 40.0);
  window.add(push(1, 20));
  window.close_update();
  window.add(push(4, 10));
  window.close_update();
  EXPECT_DOUBLE_EQ(window.mean(), (1 * 20 + 4 * 10) / 30.0) << "the first update is out of the window";
  EXPECT_EQ(window.samples(), 70u) << "of all updates";
}

TEST(LossWindow, ALossThatIsNotFiniteLeavesTheWindowWithItsUpdate) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    LossWindow window(2);
    for (const float loss : {bad, 3.0f, 5.0f}) {
      wire::Push push;
      push.loss = loss;
      push.samples = 4;
      window.add(push);
      window.close_update();
    }
    EXPECT_DOUBLE_EQ(window.mean(), 4);
  }
}

}  // namespace
}  // namespace capstan::server
