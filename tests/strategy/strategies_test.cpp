// The decisions of strategies with bounds, spares, delay compensation and local steps, event by event.

#include <gmock/gmock.h>

#include "capstan/user_error.h"

#include "play.h"

namespace capstan::strategy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Ssp, AFastWorkerWaitsAtTheBound) {
  Play play("ssp:2", 2);
  EXPECT_THAT(play.push(0), ElementsAre("apply 0: 0#1*1", "release 0 v1 in 1"));
  EXPECT_THAT(play.push(0), ElementsAre("apply 1: 0#2*1", "release 0 v2 in 2"));
  EXPECT_THAT(play.push(0), ElementsAre("apply 2: 0#3*1"));  // three ahead
  EXPECT_THAT(play.push(1), ElementsAre("apply 3: 1#1*1", "release 0 v4 in 3", "release 1 v4 in 4"));
}

TEST(Ssp, ALostWorkerNoLongerBoundsOthers) {
  Play play("ssp:0", 3);
  play.push(0);
  EXPECT_THAT(play.push(1), ElementsAre("apply 1: 1#1*1"));
  EXPECT_THAT(play.remove(2), ElementsAre("release 0 v2 in 1", "release 1 v2 in 2"));
}

TEST(Ssp, AJoiningWorkerStartsAtTheSlowest) {
  Play play("ssp:1", 2);
  for (int i = 0; i < 5; ++i) play.push(0), play.push(1);
  play.remove(1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(play.push(0).size(), 2u);
  EXPECT_THAT(play.join(1), IsEmpty());
  EXPECT_THAT(play.pull(1), ElementsAre("release 1 v13 in 0"));
  EXPECT_EQ(play.push(0).size(), 2u);  // one ahead of it
  EXPECT_EQ(play.push(0).size(), 1u);  // two
  EXPECT_EQ(play.push(1).size(), 3u);  // both are released
}

TEST(Ssp, WithoutABoundNoWorkerWaits) {
  Play play("ssp:inf", 2);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(play.push(0).size(), 2u);
}

TEST(Backup, AppliesTheFirstOfAStepAndDropsTheRest) {
  Play play("backup:1", 3);
  EXPECT_THAT(play.push(2), IsEmpty());
  EXPECT_THAT(play.push(0),
              ElementsAre("apply 0: 0#1*0.5 2#1*0.5", "release 0 v1 in 1", "release 2 v1 in 1"));
  EXPECT_THAT(play.push(1, 8, 0), ElementsAre("drop 1#1", "release 1 v1 in 0"));
  EXPECT_THAT(play.push(1, 8, 1), IsEmpty());
  EXPECT_EQ(play.push(2, 8, 1)[0], "apply 1: 1#2*0.5 2#2*0.5");
  EXPECT_EQ(play.engine().dropped(), 1u);
}

TEST(Backup, CountsLiveWorkersOnly) {
  Play play("backup:2", 4);
  play.push(3);
  EXPECT_THAT(play.remove(0), ElementsAre("apply 0: 3#1*1", "release 3 v1 in 1"));  // 3 - 2
  EXPECT_THAT(play.remove(1), IsEmpty());
  EXPECT_THAT(play.push(2, 8, 0), ElementsAre("drop 2#1", "release 2 v1 in 0"));
  EXPECT_EQ(play.push(2, 8, 1)[0], "apply 1: 2#2*1") << "one push is enough, however few workers are left";
}

TEST(Backup, WithoutSparesIsSync) {
  Play play("backup:0", 2);
  EXPECT_THAT(play.push(1), IsEmpty());
  EXPECT_EQ(play.push(0)[0], "apply 0: 0#1*0.5 1#1*0.5");
}

TEST(DelayCompensation, IsOneUpdatePerGradient) {
  Play play("dc-asgd:0.5", 2);
  EXPECT_THAT(play.push(1), ElementsAre("apply 0 compensated 0.5: 1#1*1", "release 1 v1 in 1"));
  Play adaptive("dc-asgd-a:2", 2);
  EXPECT_THAT(adaptive.push(1), ElementsAre("apply 0 adaptively compensated 2: 1#1*1", "release 1 v1 in 1"));
}

TEST(Easgd, MovesServersAndWorkersTowardsEachOther) {
  Play play("easgd:0.2:5", 3);
  EXPECT_THAT(play.push(1), ElementsAre("apply 0 moved 0.8: 1#1*0.2", "release 1 v1 in 1"));
  const auto round = play.engine().strategy().local_steps();
  EXPECT_EQ(round.payload, LocalSteps::Payload::kWeights);
  EXPECT_EQ(round.steps, 5u);
  // The worker receives w' = 0.8 w + 0.2 x: with w = 1 and x = 6 that is 2; x becomes 6 - 0.2 * 5 = 5.
  EXPECT_NEAR(6 - round.move * (6 - 2), 5, 1e-12);
}

TEST(LocalSgd, AveragesAllWorkers) {
  Play play("local-sgd:7", 4);
  for (auto w : {1u, 3u, 0u}) EXPECT_THAT(play.push(w, 10 * w), IsEmpty());
  EXPECT_EQ(play.push(2)[0], "apply 0 moved 0: 0#1*0.25 1#1*0.25 2#1*0.25 3#1*0.25");
  EXPECT_EQ(play.engine().strategy().local_steps().steps, 7u);
}

TEST(FedAvg, AveragesBySamples) {
  Play play("fedavg", 2);
  play.push(0, 6);
  EXPECT_EQ(play.push(1, 2)[0], "apply 0 moved 0: 0#1*0.75 1#1*0.25");
  play.push(0, 0);
  EXPECT_EQ(play.push(1, 0)[0], "apply 1 moved 1: 0#2*0 1#2*0") << "without samples the weights stay";
  EXPECT_EQ(play.engine().strategy().local_steps().epochs, 1u);
}

TEST(DiLoCo, MakesAnOuterStepWithTheMeanDelta) {
  Play play("diloco:50", 2);
  play.push(1, 100);
  EXPECT_EQ(play.push(0, 50)[0], "apply 0: 0#1*0.5 1#1*0.5");
  const auto outer = play.engine().strategy().outer();
  ASSERT_TRUE(outer);
  EXPECT_EQ(outer->rate, 0.7);
  EXPECT_EQ(outer->momentum, 0.9);
}

TEST(DecoupledDiLoCo, WaitsForKWorkersAndTheGrace) {
  Play play("decoupled-diloco:50:2:2s", 4);
  EXPECT_THAT(play.push(3, 30), IsEmpty());
  EXPECT_FALSE(play.engine().deadline());
  EXPECT_THAT(play.pass(10), IsEmpty());
  EXPECT_THAT(play.push(0, 10), IsEmpty());  // the second push: the grace of two seconds begins
  EXPECT_THAT(play.pass(1.5), IsEmpty());
  EXPECT_THAT(play.push(2, 60), IsEmpty());
  EXPECT_THAT(play.pass(0.5), ElementsAre("apply 0: 0#1*0.1 2#1*0.6 3#1*0.3", "release 0 v1 in 1",
                                          "release 2 v1 in 1", "release 3 v1 in 1"));
  // A late push counts for the next update.
  EXPECT_THAT(play.push(1, 50), IsEmpty());
  EXPECT_THAT(play.push(2, 50), IsEmpty());
  EXPECT_THAT(play.pass(2),
              ElementsAre("apply 1: 1#1*0.5 2#2*0.5", "release 1 v2 in 2", "release 2 v2 in 2"));
}

TEST(DecoupledDiLoCo, DoesNotWaitOnceAllHavePushed) {
  Play play("decoupled-diloco:50:2:60s", 3);
  play.push(0);
  play.push(1);
  EXPECT_EQ(play.push(2)[0].substr(0, 8), "apply 0:");
  play.push(0);
  play.push(1);
  EXPECT_EQ(play.remove(2)[0].substr(0, 8), "apply 1:");
}

TEST(FedBuff, NoWorkerWaitsAndKDeltasMakeAStep) {
  Play play("fedbuff:3", 2);
  EXPECT_THAT(play.push(0), ElementsAre("begin with 0#1*0.3333", "release 0 v0 in 1"));
  EXPECT_THAT(play.push(0), ElementsAre("add 0#2*0.3333", "release 0 v0 in 1"));
  EXPECT_THAT(play.push(0), ElementsAre("add 0#3*0.3333", "apply 0: sum", "release 0 v1 in 1"));
  // Worker 1 pulled before that update: staleness 1, factor 1 / √2.
  EXPECT_THAT(play.push(1), ElementsAre("begin with 1#1*0.2357", "release 1 v1 in 2"));
  EXPECT_THAT(play.remove(1), IsEmpty()) << "its accumulated push stays";
  EXPECT_THAT(play.push(0, 8, 1), ElementsAre("add 0#4*0.3333", "release 0 v1 in 2"));
  EXPECT_EQ(play.push(0, 8, 1)[1], "apply 1: sum");
  EXPECT_EQ(play.engine().dropped(), 0u);
  play.push(0, 8, 2);
  EXPECT_THAT(play.limit(2), IsEmpty());
  EXPECT_EQ(play.engine().dropped(), 1u) << "the deltas that are left at the end";
}

std::vector<Switch> later(const std::string& strategy, std::uint64_t from, std::uint32_t workers) {
  std::vector<Switch> phases;
  phases.push_back({{from}, parse(strategy, workers)});
  return phases;
}

TEST(Switch, TakesOverAtItsVersion) {
  Play play("sync", 2, later("async", 1, 2));
  play.push(0);
  EXPECT_EQ(play.push(1)[0], "apply 0: 0#1*0.5 1#1*0.5");
  EXPECT_EQ(play.engine().strategy().spelling(), "async");
  EXPECT_THAT(play.push(1, 8, 1), ElementsAre("apply 1: 1#2*1", "release 1 v2 in 2"));
}

TEST(Switch, AppliesBufferedPushesFirst) {
  Play play("batch:2", 3, later("async", 2, 3));
  play.push(0), play.push(1);
  play.push(0, 8, 1);
  EXPECT_EQ(play.push(1, 8, 1)[0], "apply 1: 0#2*0.5 1#2*0.5");
  Play three("batch:3", 3, later("async", 0, 3));
  EXPECT_EQ(three.engine().strategy().spelling(), "async") << "from the first update";
}

TEST(Switch, ReleasesWorkersThatWaitUnderTheOldStrategy) {
  Play play("ssp:0", 2, later("async", 2, 2));
  EXPECT_THAT(play.push(0), ElementsAre("apply 0: 0#1*1"));
  EXPECT_THAT(play.remove(1), ElementsAre("release 0 v1 in 1"));
  EXPECT_THAT(play.join(1), IsEmpty());
  EXPECT_THAT(play.pull(1), ElementsAre("release 1 v1 in 0"));
  EXPECT_THAT(play.push(0, 8, 1), ElementsAre("apply 1: 0#2*1", "release 0 v2 in 2"));
}

TEST(Switch, AResumedRunHasTheStrategyOfItsVersion) {
  Engine engine(parse("sync", 2), later("async", 10, 2));
  engine.resume({10});
  EXPECT_EQ(engine.strategy().spelling(), "async");
  Engine before(parse("sync", 2), later("async", 10, 2));
  before.resume({9});
  EXPECT_EQ(before.strategy().spelling(), "sync");
}

TEST(Strategies, HaveDefaults) {
  const std::pair<const char*, const char*> expected[] = {
      {"ssp", "ssp:3"},
      {"backup", "backup:1"},
      {"dc-asgd", "dc-asgd:0.04"},
      {"dc-asgd-a", "dc-asgd-a:0.04"},
      {"easgd", "easgd:0.225:10"},
      {"easgd:0.5", "easgd:0.5:10"},
      {"local-sgd", "local-sgd:10"},
      {"diloco", "diloco:500"},
      {"decoupled-diloco", "decoupled-diloco:500:2:1s"},
      {"decoupled-diloco:5:3:250ms", "decoupled-diloco:5:3:0.25s"},
      {"fedavg", "fedavg:1"},
      {"fedbuff", "fedbuff:10:10:1"},
  };
  for (const auto& [spelling, whole] : expected) {
    EXPECT_EQ(parse(spelling, 4)->spelling(), whole);
    EXPECT_EQ(parse(whole, 4)->spelling(), whole) << "parses its own spelling";
  }
}

TEST(Strategies, OptionsOutOfRangeAreNamed) {
  const std::pair<const char*, const char*> wrong[] = {
      {"ssp:-1", "a whole number from 0"},
      {"ssp:x", "\"x\""},
      {"ssp:1:2", "unexpected option \"2\""},
      {"backup:4", "leaves none of 4 workers"},
      {"dc-asgd:nan", "a number from 0"},
      {"dc-asgd:-0.1", "a number from 0"},
      {"easgd:1", "0.999"},
      {"easgd:0", "ALPHA"},
      {"easgd:0.5:0", "T must be a whole number from 1"},
      {"easgd::5", "ALPHA must be"},
      {"local-sgd:0", "H must be a whole number from 1"},
      {"diloco:inf", "H must be"},
      {"decoupled-diloco:5:5", "at most 4"},
      {"decoupled-diloco:5:2:3", "such as 2s or 500ms"},
      {"decoupled-diloco:5:2:-1s", "such as 2s or 500ms"},
      {"fedbuff:0", "K must be"},
      {"fedavg:0", "EPOCHS must be"},
      {"easgd:", "an option is missing after the colon"},
      {"delico", "did you mean diloco?"},
  };
  for (const auto& [spelling, says] : wrong) {
    try {
      (void)parse(spelling, 4);
      ADD_FAILURE() << spelling << " was accepted";
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr(says)) << spelling;
    }
  }
}

}  // namespace
}  // namespace capstan::strategy
