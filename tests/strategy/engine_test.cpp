// The decisions of each strategy, event by event.

#include "capstan/strategy/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

#include "play.h"

namespace capstan::strategy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Engine, DecidesNothingBeforeBegin) {
  Engine engine(parse("async", 2));
  EXPECT_THAT(engine.join({0}), IsEmpty());
  EXPECT_THAT(engine.pull({0}), IsEmpty());
  EXPECT_THAT(engine.join({1}), IsEmpty());
  EXPECT_THAT(texts(engine.begin()), ElementsAre("release 0 v0 in 0"));  // 1 has not pulled
  EXPECT_THAT(texts(engine.pull({1})), ElementsAre("release 1 v0 in 0"));
}

TEST(Sync, UpdatesWithTheLastWorkerAndReleasesAll) {
  Play play("sync", 2);
  EXPECT_THAT(play.push(0), IsEmpty());
  EXPECT_THAT(play.push(1),
              ElementsAre("apply 0: 0#1*0.5 1#1*0.5", "release 0 v1 in 1", "release 1 v1 in 1"));
  EXPECT_THAT(play.push(1), IsEmpty());
  EXPECT_THAT(play.push(0),
              ElementsAre("apply 1: 0#2*0.5 1#2*0.5", "release 0 v2 in 2", "release 1 v2 in 2"));
}

TEST(Sync, MergesByRankWhateverTheOrderOfArrival) {
  Play play("sync", 4);
  for (auto w : {2u, 0u, 3u}) EXPECT_THAT(play.push(w), IsEmpty());
  EXPECT_EQ(play.push(1)[0], "apply 0: 0#1*0.25 1#1*0.25 2#1*0.25 3#1*0.25");
}

TEST(Sync, WeighsBySamples) {
  Play play("sync", 3);
  play.push(0, 6);
  play.push(1, 2);
  EXPECT_EQ(play.push(2, 0)[0], "apply 0: 0#1*0.75 1#1*0.25 2#1*0");
}

TEST(Sync, WorkersWithoutAnySampleMakeAnEmptyUpdate) {
  Play play("sync", 2);
  play.push(0, 0);
  EXPECT_EQ(play.push(1, 0)[0], "apply 0: 0#1*0 1#1*0");
}

TEST(Sync, AWorkerLostBeforeItsPushCompletesTheStepOfTheOthers) {
  Play play("sync", 3);
  play.push(2);
  play.push(0);
  EXPECT_THAT(play.remove(1),
              ElementsAre("apply 0: 0#1*0.5 2#1*0.5", "release 0 v1 in 1", "release 2 v1 in 1"));
}

TEST(Sync, APushOfALostWorkerIsDropped) {
  Play play("sync", 3);
  play.push(1);
  play.push(0);
  EXPECT_THAT(play.remove(1), ElementsAre("drop 1#1"));
  EXPECT_THAT(play.push(2),
              ElementsAre("apply 0: 0#1*0.5 2#1*0.5", "release 0 v1 in 1", "release 2 v1 in 1"));
  EXPECT_EQ(play.engine().dropped(), 1u);
}

TEST(Sync, TheLastWorkerMayLeave) {
  Play play("sync", 1);
  EXPECT_THAT(play.remove(0), IsEmpty());
  EXPECT_THAT(play.remove(0), IsEmpty());  // not a member any more
  EXPECT_EQ(play.engine().live(), 0u);
}

TEST(Sync, ALateWorkerIsWaitedForAfterItJoins) {
  Play play("sync", 2);
  play.remove(1);
  EXPECT_THAT(play.push(0), ElementsAre("apply 0: 0#1*1", "release 0 v1 in 1"));
  EXPECT_THAT(play.join(1), IsEmpty());
  EXPECT_THAT(play.pull(1), ElementsAre("release 1 v1 in 0"));
  EXPECT_THAT(play.push(0), IsEmpty());
  EXPECT_EQ(play.push(1, 8, 1)[0], "apply 1: 0#2*0.5 1#1*0.5");
}

TEST(Sync, ALostAnswerIsRepeated) {
  Play play("sync", 2);
  play.push(0);
  play.push(1);
  EXPECT_THAT(play.pull(0), ElementsAre("release 0 v1 in 1"));
  play.push(0);
  EXPECT_THAT(play.pull(0), IsEmpty());  // its push still waits
}

TEST(Engine, TheLimitAnswersAndDropsLaterPushes) {
  Play play("sync", 2);
  EXPECT_THAT(play.limit(1), IsEmpty());
  play.push(0);
  EXPECT_THAT(play.push(1),
              ElementsAre("apply 0: 0#1*0.5 1#1*0.5", "release 0 v1 in 1", "release 1 v1 in 1"));
  EXPECT_TRUE(play.engine().exhausted());
  EXPECT_THAT(play.push(0), ElementsAre("drop 0#2", "release 0 v1 in 0"));
}

TEST(Engine, ALimitAtTheCurrentVersionDropsWaitingPushes) {
  Play play("sync", 2);
  play.push(1);
  EXPECT_THAT(play.limit(0), ElementsAre("drop 1#1", "release 1 v0 in 0"));
  EXPECT_EQ(play.engine().dropped(), 1u);
}

TEST(Async, EveryPushIsOneUpdateWithItsWholeWeight) {
  Play play("async", 3);
  EXPECT_THAT(play.push(1, 3), ElementsAre("apply 0: 1#1*1", "release 1 v1 in 1"));
  EXPECT_THAT(play.push(0, 5), ElementsAre("apply 1: 0#1*1", "release 0 v2 in 2"));
  EXPECT_THAT(play.push(1, 7, 1), ElementsAre("apply 2: 1#2*1", "release 1 v3 in 3"));
}

// A push with staleness t is applied with 1 / (1 + t) of the learning rate.
TEST(Async, DampedUpdatesShrinkWithStaleness) {
  Play play("async:damped", 3);
  EXPECT_THAT(play.push(1, 3, 0), ElementsAre("apply 0: 1#1*1", "release 1 v1 in 1"));
  EXPECT_THAT(play.push(0, 5, 0), ElementsAre("apply 1 at 0.5: 0#1*1", "release 0 v2 in 2"));
  EXPECT_THAT(play.push(1, 7, 1), ElementsAre("apply 2 at 0.5: 1#2*1", "release 1 v3 in 3"));
  EXPECT_THAT(play.push(2, 8, 0), ElementsAre("apply 3 at 0.25: 2#1*1", "release 2 v4 in 4"));
  EXPECT_THAT(play.push(2, 8, 4), ElementsAre("apply 4: 2#2*1", "release 2 v5 in 5"));
  EXPECT_EQ(play.engine().strategy().spelling(), "async:damped");
}

TEST(Async, OtherWorkersDoNotNoticeALoss) {
  Play play("async", 2);
  EXPECT_THAT(play.remove(0), IsEmpty());
  EXPECT_THAT(play.push(1), ElementsAre("apply 0: 1#1*1", "release 1 v1 in 1"));
}

TEST(Async, StalenessCountsTheUpdatesInBetween) {
  Play play("async", 2);
  for (std::uint64_t v = 0; v < 4; ++v) play.push(0, 8, v);
  play.push(1, 8, 0);
  EXPECT_EQ(play.engine().staleness().max, 4u);
  EXPECT_DOUBLE_EQ(play.engine().staleness().mean, 4.0 / 5);
}

TEST(Batch, TheKthPushCompletesAnUpdateOfTheFirstK) {
  Play play("batch:2", 3);
  EXPECT_THAT(play.push(2), IsEmpty());
  EXPECT_THAT(play.push(0),
              ElementsAre("apply 0: 0#1*0.5 2#1*0.5", "release 0 v1 in 1", "release 2 v1 in 1"));
  EXPECT_THAT(play.push(1), IsEmpty());  // counts for the next update
  EXPECT_THAT(play.push(2),
              ElementsAre("apply 1: 1#1*0.5 2#2*0.5", "release 1 v2 in 2", "release 2 v2 in 2"));
}

TEST(Batch, NeedsNoMoreThanTheLiveWorkers) {
  Play play("batch:3", 3);
  play.push(0);
  EXPECT_THAT(play.remove(1), IsEmpty());
  EXPECT_THAT(play.remove(2), ElementsAre("apply 0: 0#1*1", "release 0 v1 in 1"));
}

TEST(Batch, WithoutANumberMergesAllWorkers) {
  EXPECT_EQ(parse("batch", 5)->spelling(), "batch:5");
  EXPECT_EQ(parse("batch:2", 5)->spelling(), "batch:2");
}

TEST(Strategies, DeclareWhetherWeightsMayBeReadInPlace) {
  EXPECT_TRUE(parse("sync", 4)->workers_idle_during_update(4));
  EXPECT_FALSE(parse("async", 4)->workers_idle_during_update(4));
  EXPECT_TRUE(parse("async", 1)->workers_idle_during_update(1));
  EXPECT_TRUE(parse("batch:4", 4)->workers_idle_during_update(4));
  EXPECT_FALSE(parse("batch:3", 4)->workers_idle_during_update(4));
}

TEST(Strategies, DeclareThePushesPerUpdate) {
  EXPECT_EQ(parse("sync", 4)->pushes_per_update(4), 4u);
  EXPECT_EQ(parse("async", 4)->pushes_per_update(4), 1u);
  EXPECT_EQ(parse("batch:3", 4)->pushes_per_update(4), 3u);
}

std::string parse_error(const std::string& spelling, std::uint32_t workers) {
  try {
    (void)parse(spelling, workers);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Strategies, WrongSpellingsAreErrorsWithTheRightOne) {
  EXPECT_THAT(parse_error("snyc", 2), HasSubstr("did you mean sync?"));
  EXPECT_THAT(parse_error("asinc", 2), HasSubstr("did you mean async?"));
  EXPECT_THAT(parse_error("bach:2", 2), HasSubstr("did you mean batch?"));
  EXPECT_THAT(parse_error("", 2), HasSubstr("sync, async, batch"));
  EXPECT_THAT(parse_error("batch:3", 2), HasSubstr("at most 2"));
  for (const auto* k : {"0", "-1", "x", "2x", "2.5", "99999999999", " 1"}) {
    EXPECT_THAT(parse_error(std::string("batch:") + k, 2), HasSubstr(k)) << k;
  }
  EXPECT_THAT(parse_error("sync:1", 2), HasSubstr("strategy sync: unexpected option \"1\""));
  EXPECT_THAT(parse_error("async:1", 2), HasSubstr("async[:damped]"));
  EXPECT_THAT(parse_error("Sync", 2), HasSubstr("did you mean sync?"));
}

TEST(Strategies, TheTableListsWhatParseAccepts) {
  for (const auto& entry : table()) EXPECT_THAT(parse(entry.name, 3)->spelling(), HasSubstr(entry.name));
}

}  // namespace
}  // namespace capstan::strategy
