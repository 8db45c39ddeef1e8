// Steps of several phases: which orders follow which events, and invariants under random events. With one
// strategy, group 0 is of the last phase; with two phases, group 1 is of the first.

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "capstan/base/random.h"
#include "server/group_play.h"

namespace capstan::server {
namespace {

using ::testing::IsEmpty;

// A play of two phases that has begun.
class Phases : public Play {
 public:
  explicit Phases(const std::string& strategy, std::uint32_t workers = 2, std::uint64_t max_steps = 0,
                  std::uint32_t phases = 2)
      : Play(strategy, workers, max_steps, phases) {
    begin();
  }
  std::vector<std::uint64_t> versions() {
    std::vector<std::uint64_t> out;
    for (const auto v : coordinator().versions()) out.push_back(v.value);
    return out;
  }
};

using Versions = std::vector<std::uint64_t>;

std::string first(const Texts& orders) {
  return orders.empty() ? "nothing" : orders[0];
}

TEST(PhaseOrders, OfSyncAreOneUpdateEach) {
  Phases play("sync");
  EXPECT_THAT(play.push(0), IsEmpty());
  EXPECT_EQ(play.push(1), (Texts{"apply 1/0 at 0: 0#1 1#1", "deliver 0 v0 in 1", "deliver 1 v0 in 1"}));
  EXPECT_THAT(play.push(1), IsEmpty());
  EXPECT_EQ(play.push(0), (Texts{"apply 0/0 at 0: 0#2 1#2", "deliver 0 v1 in 1", "deliver 1 v1 in 1"}));
  play.push(0);
  EXPECT_EQ(play.push(1), (Texts{"apply 1/1 at 1: 0#3 1#3", "deliver 0 v1 in 2", "deliver 1 v1 in 2"}))
      << "the learning rate of the step";
}

TEST(PhaseOrders, OfAsyncFollowTheirWorker) {
  Phases play("async");
  EXPECT_EQ(play.push(0), (Texts{"apply 1/0 at 0: 0#1", "deliver 0 v0 in 1"}));
  EXPECT_EQ(play.push(1), (Texts{"apply 1/1 at 0: 1#1", "deliver 1 v0 in 2"}));
  EXPECT_EQ(play.push(0), (Texts{"apply 0/0 at 0: 0#2", "deliver 0 v1 in 1"}));
  EXPECT_EQ(play.push(0), (Texts{"apply 1/2 at 1: 0#3", "deliver 0 v1 in 3"}));
  EXPECT_EQ(play.push(1), (Texts{"apply 0/1 at 1: 1#2", "deliver 1 v2 in 2"}));
}

TEST(PhaseOrders, WaitOnlyForTheGroupsOfThePhase) {
  Phases play("default=async,x=sync");
  // Groups 0 and 1 are the default and x of the last phase, 2 and 3 those of the first.
  EXPECT_EQ(play.push(0), (Texts{"apply 2/0 at 0: 0#1"}));
  EXPECT_EQ(play.push(1), (Texts{"apply 2/1 at 0: 1#1", "apply 3/0 at 0: 0#1 1#1", "deliver 0 v0 in 1",
                                 "deliver 1 v0 in 2"}));
  EXPECT_EQ(play.push(1), (Texts{"apply 0/0 at 0: 1#2"}));
  EXPECT_EQ(play.push(0), (Texts{"apply 0/1 at 1: 0#2", "apply 1/0 at 1: 0#2 1#2", "deliver 0 v2 in 2",
                                 "deliver 1 v2 in 1"}));
}

TEST(PhaseOrders, AnswerAReconnectedWorkerInTheMiddleOfAStep) {
  Phases play("sync");
  play.push(0);
  EXPECT_THAT(play.pull(0), IsEmpty()) << "its push waits for the update";
  EXPECT_EQ(play.push(1), (Texts{"apply 1/0 at 0: 0#1 1#1", "deliver 0 v0 in 1", "deliver 1 v0 in 1"}));
  EXPECT_EQ(play.pull(0), (Texts{"deliver 0 v0 in 1"})) << "the answer was lost";
  play.push(0);
  EXPECT_THAT(play.pull(0), IsEmpty());
  EXPECT_EQ(play.push(1), (Texts{"apply 0/0 at 0: 0#2 1#2", "deliver 0 v1 in 1", "deliver 1 v1 in 1"}));
}

// ---- workers in different phases ----

TEST(PhasesOfANewWorker, DoNotHoldUpTheOthersForEver) {
  Phases play("sync", 3);
  play.lose(2);
  play.push(0), play.push(1);
  EXPECT_EQ(play.come(2, 77), (Texts{"deliver 2 v0 in 0"})) << "the others are in their second phase";
  EXPECT_THAT(play.push(0), IsEmpty());
  EXPECT_THAT(play.push(1), IsEmpty());
  play.reset_sequence(2);
  EXPECT_EQ(play.push(2), (Texts{"apply 0/0 at 0: 0#2 1#2", "deliver 0 v1 in 1", "deliver 1 v1 in 1"}))
      << "all wait: the latest phase applies what it has";
  EXPECT_THAT(play.push(0), IsEmpty());
  EXPECT_EQ(play.push(1), (Texts{"apply 1/1 at 1: 0#3 1#3 2#1", "deliver 0 v1 in 2", "deliver 1 v1 in 2",
                                 "deliver 2 v1 in 2"}))
      << "now all are in one phase";
  play.push(2), play.push(0);
  EXPECT_EQ(first(play.push(1)), "apply 0/1 at 1: 0#4 1#4 2#2");
  EXPECT_EQ(play.versions(), (Versions{2, 2}));
}

TEST(PhasesOfALostWorker, DoNotHoldUpTheOthersForEver) {
  Phases play("batch:2", 3);
  play.push(0), play.push(1);
  EXPECT_THAT(play.push(0), IsEmpty());
  EXPECT_THAT(play.push(2), IsEmpty()) << "one in each phase";
  EXPECT_EQ(play.lose(1), (Texts{"apply 0/0 at 0: 0#2", "deliver 0 v1 in 1"}));
  EXPECT_EQ(play.push(0), (Texts{"apply 1/1 at 1: 0#3 2#1", "deliver 0 v1 in 2", "deliver 2 v1 in 2"}));
}

TEST(PhasesOfTwoWorkers, InDifferentPhasesOfABatchContinue) {
  Phases play("batch:2", 2, 0, 3);
  play.push(0), play.push(1);
  play.lose(1);
  EXPECT_EQ(play.push(0), (Texts{"apply 2/0 at 0: 0#2", "deliver 0 v0 in 1"}));
  play.come(1, 77);
  play.reset_sequence(1);
  EXPECT_THAT(play.push(1), IsEmpty());
  EXPECT_EQ(play.push(0), (Texts{"apply 0/0 at 0: 0#3", "deliver 0 v1 in 1"}));
  EXPECT_EQ(play.push(0), (Texts{"apply 1/1 at 1: 0#4 1#1", "deliver 0 v1 in 2", "deliver 1 v1 in 2"}));
}

// ---- strategies that count steps ----

TEST(PhasesOfBackup, CompareTheStepOfAPush) {
  Phases play("backup:1", 3);
  play.push(0);
  EXPECT_EQ(first(play.push(1)), "apply 1/0 at 0: 0#1 1#1");
  EXPECT_EQ(play.push(2), (Texts{"drop 1: 2#1", "deliver 2 v0 in 0"})) << "its phase is over";
  play.push(0);
  EXPECT_EQ(play.push(2), (Texts{"apply 0/0 at 0: 0#2 2#2", "deliver 0 v1 in 1", "deliver 2 v1 in 1"}))
      << "the next phase of the same step";
  EXPECT_EQ(play.push(1), (Texts{"drop 0: 1#2", "deliver 1 v1 in 0"}));
  play.push(0);
  EXPECT_EQ(first(play.push(2)), "apply 1/1 at 1: 0#3 2#3");
  play.push(2);
  EXPECT_EQ(play.push(1), (Texts{"drop 1: 1#3", "deliver 1 v1 in 0"}))
      << "it began step 1, whose phase is over";
  EXPECT_EQ(first(play.push(1)), "apply 0/1 at 1: 1#4 2#4");
}

TEST(PhasesOfSsp, AreOneStepOfItsClock) {
  Phases play("ssp:0");
  EXPECT_EQ(play.push(0), (Texts{"apply 1/0 at 0: 0#1", "deliver 0 v0 in 1"})) << "no step is complete";
  EXPECT_EQ(play.push(0), (Texts{"apply 0/0 at 0: 0#2"})) << "one step ahead";
  EXPECT_EQ(play.push(1), (Texts{"apply 1/1 at 1: 1#1", "deliver 1 v1 in 2"}));
  EXPECT_EQ(play.push(1), (Texts{"apply 0/1 at 1: 1#2", "deliver 0 v2 in 1", "deliver 1 v2 in 2"}));
}

TEST(PhasesOfSsp, BoundAGroupOfAnEarlierPhaseByCompleteSteps) {
  Play play("default=async,x=ssp:0");
  // Group 1, the only one of the first phase, has ssp.
  play.coordinator().set_groups(
      {FlatLayout({{"x", {3}}, {"y", {3}}}), {.strategies = {"x"}, .phases = {{"x", {"x"}}, {"y", {"y"}}}}});
  play.begin();
  EXPECT_EQ(play.push(0), (Texts{"apply 1/0 at 0: 0#1", "deliver 0 v0 in 1"}));
  EXPECT_EQ(play.push(0), (Texts{"apply 0/0 at 0: 0#2", "deliver 0 v1 in 1"}));
  EXPECT_EQ(play.push(0), (Texts{"apply 1/1 at 1: 0#3"})) << "one step ahead";
  EXPECT_EQ(play.push(1), (Texts{"apply 1/2 at 1: 1#1", "deliver 1 v1 in 3"}));
  EXPECT_EQ(play.push(1), (Texts{"apply 0/1 at 1: 1#2", "deliver 0 v2 in 2", "deliver 1 v2 in 2"}));
}

// ---- the end ----

TEST(PhasesAtAStop, FinishTheStepThatHasBegun) {
  Phases play("sync");
  play.push(0), play.push(1);
  EXPECT_THAT(play.stop(), IsEmpty());
  EXPECT_THAT(play.push(0), IsEmpty());
  EXPECT_EQ(play.push(1),
            (Texts{"apply 0/0 at 0: 0#2 1#2", "deliver 0 v1 in 1 stop", "deliver 1 v1 in 1 stop"}));
  EXPECT_EQ(play.versions(), (Versions{1, 1}));
}

TEST(PhasesAtAStop, BeginNoStep) {
  Phases play("sync");
  play.push(0);
  EXPECT_EQ(play.stop(), (Texts{"drop 1: 0#1", "deliver 0 v0 in 0 stop"}));
  EXPECT_EQ(play.push(1), (Texts{"drop 1: 1#1", "deliver 1 v0 in 0 stop"}));
  EXPECT_EQ(play.versions(), (Versions{0, 0}));
}

TEST(PhasesAtAStop, OfAsyncFinishTheStepsThatHaveBegun) {
  Phases play("async", 3);
  play.push(0);
  EXPECT_THAT(play.stop(), IsEmpty());
  EXPECT_EQ(play.push(1), (Texts{"drop 1: 1#1", "deliver 1 v0 in 0 stop"}));
  EXPECT_EQ(play.push(0), (Texts{"apply 0/0 at 0: 0#2", "deliver 0 v1 in 1 stop"}));
  EXPECT_EQ(play.push(2), (Texts{"drop 1: 2#1", "deliver 2 v1 in 0 stop"}));
  EXPECT_EQ(play.versions(), (Versions{1, 1}));
}

TEST(PhasesAtAStop, ReleaseWorkersWhosePhaseIsComplete) {
  Phases play("default=sync,x=async", 2, 0, 2);
  play.push(0);  // x has applied it, the default has not
  EXPECT_EQ(play.stop(), (Texts{"drop 2: 0#1", "deliver 0 v0 in 0 stop"}));
}

TEST(PhasesAtAStop, BeforeThereIsAModelBeginNoStep) {
  Coordinator coordinator({"sync", 1, 1});
  (void)coordinator.stop({});
  coordinator.set_groups(testing::groups_of("sync", 1, 2));
  ASSERT_TRUE(coordinator.admit(wire::Role::kWorker, 0, {7}));
  (void)coordinator.pull({wire::Role::kWorker, 0}, {1, {}}, {});
  const auto actions = coordinator.initialized(ServerId{0}, {});
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(text(std::get<Order>(actions[0])), "deliver 0 v0 in 0 stop");
}

TEST(PhasesAtTheLimit, EndAfterALastPhase) {
  Phases play("sync", 2, 1);
  play.push(0);
  EXPECT_EQ(play.push(1), (Texts{"apply 1/0 at 0: 0#1 1#1", "deliver 0 v0 in 1", "deliver 1 v0 in 1"}));
  play.push(0);
  EXPECT_EQ(play.push(1),
            (Texts{"apply 0/0 at 0: 0#2 1#2", "deliver 0 v1 in 1 stop", "deliver 1 v1 in 1 stop"}));
}

TEST(PhasesAtTheLimit, OfAsyncDropTheRest) {
  Phases play("async", 2, 1);
  play.push(1);
  play.push(0);
  EXPECT_EQ(play.push(0), (Texts{"apply 0/0 at 0: 0#2", "deliver 0 v1 in 1 stop"}));
  EXPECT_EQ(play.push(1), (Texts{"drop 0: 1#2", "deliver 1 v1 in 0 stop"}));
}

// ---- reports and checkpoints ----

TEST(PhasesInAReport, CountTheSamplesOfAStepOnce) {
  Phases play("sync", 1);
  play.push(0, 9.0f);
  EXPECT_EQ(play.coordinator().report().samples, 0u);
  EXPECT_EQ(play.coordinator().report().workers[0].samples, 0u);
  play.push(0, 2.0f);
  const auto report = play.coordinator().report();
  EXPECT_EQ(report.samples, 8u);
  EXPECT_EQ(report.workers[0].samples, 8u);
  EXPECT_EQ(report.workers[0].pushes, 2u);
  EXPECT_EQ(report.loss, 2.0) << "of the last phase";
  EXPECT_EQ(report.workers[0].loss, 2.0f);
}

TEST(PhasesInACheckpoint, HaveTheMarksOfTheNewestPush) {
  Phases play("async", 2);
  play.push(0), play.push(0), play.push(1);
  using Mark = checkpoint::HighWaterMark;
  EXPECT_EQ(play.coordinator().marks(),
            (std::vector<Mark>{
                {{0}, {100}, {2}, 0}, {{0}, {100}, {2}, 1}, {{1}, {200}, {1}, 0}, {{1}, {200}, {1}, 1}}));
  EXPECT_EQ(play.coordinator().steps_done(), (std::vector<std::uint64_t>{2, 0}))
      << "worker 1 has pushed one phase of its step";
}

TEST(PhasesAfterAResume, ContinueInTheMiddleOfAStep) {
  Coordinator coordinator({"async", 1, 1});
  coordinator.set_groups(testing::groups_of("async", 1, 2));
  coordinator.resume({{4}, {5}}, {{{0}, {7}, {9}, 0}, {{0}, {7}, {9}, 1}});
  (void)coordinator.initialized(ServerId{0}, {});
  ASSERT_TRUE(coordinator.admit(wire::Role::kWorker, 0, {7}));
  (void)coordinator.pull({wire::Role::kWorker, 0}, {1, {}}, {});
  const auto actions = coordinator.pushed({{0}, {7}, {10}, {5}, {4}, 8, 1}, {});
  ASSERT_GE(actions.size(), 2u);
  EXPECT_EQ(text(std::get<Order>(actions[0])), "apply 0/4 at 4: 0#10");
  EXPECT_EQ(text(std::get<Order>(actions[1])), "deliver 0 v5 in 5");
}

// ---- random events ----

struct Script {
  std::uint32_t workers = 1, phases = 1;
  std::vector<std::string> strategies;  // of the default and the groups
  std::vector<double> speed;            // by worker
  std::uint64_t seed = 0, max_steps = 0;
  int pushes = 0;
  std::map<int, std::uint32_t> changes;  // after so many pushes, this worker is lost or joins
  bool stops = false;
};

std::string any_strategy(std::uint32_t workers, bool backup) {
  const auto up_to = [](std::uint32_t low, std::uint32_t high) {
    return *rc::gen::inRange<std::uint32_t>(low, high + 1);
  };
  if (backup) return fmt::format("backup:{}", up_to(0, workers - 1));
  switch (up_to(0, 5)) {
    case 0:
      return "async";
    case 1:
      return fmt::format("batch:{}", up_to(1, workers));
    case 2:
      return fmt::format("ssp:{}", up_to(0, 3));
    case 3:
      return "dc-asgd";
    default:
      return "sync";
  }
}

Script any_script() {
  Script s;
  s.workers = *rc::gen::inRange<std::uint32_t>(1, 6);
  s.phases = *rc::gen::inRange<std::uint32_t>(1, 4);
  const bool backup = *rc::gen::inRange(0, 5) == 0, sync = *rc::gen::inRange(0, 5) == 0;
  const int groups = *rc::gen::inRange(1, 4);
  for (int g = 0; g < groups; ++g) s.strategies.push_back(sync ? "sync" : any_strategy(s.workers, backup));
  for (std::uint32_t w = 0; w < s.workers; ++w)
    s.speed.push_back(*rc::gen::element(0.1, 0.1, 0.12, 0.3, 1.0, 10.0));
  s.seed = *rc::gen::arbitrary<std::uint64_t>();
  s.max_steps = *rc::gen::element<std::uint64_t>(0, 0, 0, 3, 15);
  s.pushes = *rc::gen::inRange(1, 120);
  const int changes = *rc::gen::arbitrary<bool>() ? *rc::gen::inRange(0, 12) : 0;
  for (int i = 0; i < changes; ++i)
    s.changes[*rc::gen::inRange(0, s.pushes)] = *rc::gen::inRange<std::uint32_t>(0, s.workers);
  s.stops = *rc::gen::arbitrary<bool>();
  return s;
}

std::string spelling(const Script& s) {
  if (s.strategies.size() == 1) return s.strategies[0];
  auto out = "default=" + s.strategies[0];
  for (std::size_t g = 1; g < s.strategies.size(); ++g) out += fmt::format(",g{}={}", g, s.strategies[g]);
  return out;
}

// Runs a script: workers push one phase after the other until they are stopped. What became of each push is
// tracked from the orders only.
class Run {
 public:
  explicit Run(const Script& script)
      : script_(script),
        random_(script.seed),
        groups_(testing::groups_of(spelling(script), script.workers, script.phases)),
        coordinator_({spelling(script), script.workers, 1, script.max_steps}),
        versions_(groups_.size()) {
    coordinator_.set_groups(groups_);
  }

  void play() {
    for (std::uint32_t w = 0; w < script_.workers; ++w) come(w);
    take(coordinator_.initialized(ServerId{0}, kNow));
    for (int made = 0, changed = -1; made < script_.pushes && !live_.empty();) {
      if (const auto change = script_.changes.find(made);
          change != script_.changes.end() && changed != made) {
        changed = made;
        live_.contains(change->second) ? lose(change->second) : come(change->second);
        continue;
      }
      ++made;
      next();
    }
    if (script_.stops) {
      stopping_ = true;
      take(coordinator_.stop(kNow));
    }
    // No step is left half done: workers continue until the answer to a last phase.
    while (!live_.empty()) {
      if (!script_.stops) over_ = true;
      next();
    }
    check_end();
  }

 private:
  struct Worker {
    std::uint64_t incarnation = 0, sequence = 0;
    bool waits = true;
  };
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // incarnation, sequence

  static constexpr TimePoint kNow{};

  // The next worker that has computed pushes.
  void next() {
    RC_ASSERT(!computing_.empty());  // else all workers wait for ever
    const auto [at, w] = *computing_.begin();
    computing_.erase(computing_.begin());
    now_ = at;
    auto& worker = live_.at(w);
    // At the end of its data, a worker leaves after a step.
    if (over_ && groups_.ends_step(worker.sequence)) return leave(w);
    worker.waits = true;
    const auto sequence = ++worker.sequence;
    pushes_[{worker.incarnation, sequence}] = {};
    take(coordinator_.pushed(
        {{w}, {worker.incarnation}, {sequence}, {sequence / script_.phases}, versions_[0], 1 + w}, kNow));
  }
  void come(std::uint32_t w) {
    if (left_.contains(w)) return;
    RC_ASSERT(coordinator_.admit(wire::Role::kWorker, w, {++incarnations_}).status().is_ok());
    live_[w] = {incarnations_};
    owner_[incarnations_] = w;
    take(coordinator_.pull({wire::Role::kWorker, w}, {1, {}}, kNow));
  }
  void end(std::uint32_t w, bool lost) {
    live_.erase(w);
    std::erase_if(computing_, [&](const auto& c) { return c.second == w; });
    take(coordinator_.member_ended({wire::Role::kWorker, w}, lost, kNow));
  }
  void lose(std::uint32_t w) {
    lost_ = true;
    end(w, true);
  }
  void leave(std::uint32_t w) {
    left_.insert(w);
    end(w, false);
  }

  void settle(WorkerId worker, Sequence sequence, std::uint32_t group) {
    const auto incarnation = newest(worker);
    const auto found = pushes_.find({incarnation, sequence.value});
    RC_ASSERT(found != pushes_.end());
    RC_ASSERT(groups_[group].phase == (sequence.value - 1) % script_.phases);  // only its own phase's groups
    RC_ASSERT(found->second.insert(group).second);                             // once
  }
  std::uint64_t newest(WorkerId worker) const {
    for (auto it = owner_.rbegin(); it != owner_.rend(); ++it) {
      if (it->second == worker.value) return it->first;
    }
    return 0;
  }

  void take(const Actions& actions) {
    for (const auto& action : actions) {
      const auto* order = std::get_if<Order>(&action);
      if (!order) continue;
      if (const auto* apply = std::get_if<wire::ApplyOrder>(order)) {
        RC_ASSERT(!apply->contributions.empty());
        RC_ASSERT(apply->before.value == versions_[apply->group].value++);
        for (const auto& c : apply->contributions) settle(c.worker, c.sequence, apply->group);
      } else if (const auto* drop = std::get_if<wire::DropOrder>(order)) {
        settle(drop->worker, drop->sequence, drop->group);
      } else if (const auto* deliver = std::get_if<wire::DeliverOrder>(order)) {
        answer(*deliver);
      }
    }
    for (const auto w : std::exchange(leaving_, {})) leave(w);
  }
  void answer(const wire::DeliverOrder& order) {
    const auto w = order.member.index;
    auto& worker = live_.at(w);
    RC_ASSERT(worker.waits);
    if (worker.sequence > 0) RC_ASSERT(is_settled({worker.incarnation, worker.sequence}));
    worker.waits = false;
    const bool at_limit = script_.max_steps > 0 && versions_[0].value >= script_.max_steps;
    RC_ASSERT((!order.reply.stop || stopping_ || at_limit));
    RC_ASSERT((order.reply.stop || !at_limit));
    if (stopping_ && groups_.ends_step(worker.sequence)) RC_ASSERT(order.reply.stop);
    if (order.reply.stop) return leaving_.push_back(w);
    computing_.emplace(now_ + script_.speed[w] * (1 + random_.uniform()), w);
  }
  // By all groups of its phase.
  bool is_settled(const Key& key) const {
    std::size_t expected = 0;
    for (const auto& group : groups_) expected += group.phase == (key.second - 1) % script_.phases;
    return pushes_.at(key).size() == expected;
  }

  void check_end() {
    for (const auto& [key, by] : pushes_) RC_ASSERT(is_settled(key));
    for (std::uint32_t g = 0; g < groups_.size(); ++g) RC_ASSERT(coordinator_.versions()[g] == versions_[g]);
    const bool sync = std::ranges::all_of(script_.strategies, [](const auto& s) { return s == "sync"; });
    if (!sync || lost_) return;
    for (const auto version : versions_) RC_ASSERT(version == versions_[0]);
  }

  const Script script_;
  Random random_;
  const ParameterGroups groups_;
  Coordinator coordinator_;
  std::vector<Version> versions_;
  std::map<std::uint32_t, Worker> live_;
  std::map<std::uint64_t, std::uint32_t> owner_;  // rank of each incarnation
  std::multimap<double, std::uint32_t> computing_;
  std::map<Key, std::set<std::uint32_t>> pushes_;  // the groups that have settled it
  std::vector<std::uint32_t> leaving_;
  std::set<std::uint32_t> left_;
  double now_ = 0;
  std::uint64_t incarnations_ = 0;
  bool lost_ = false, stopping_ = false, over_ = false;
};

RC_GTEST_PROP(PhasesProperty, NoWorkerWaitsForEverAndEveryPushCountsOnceInItsPhase, ()) {
  Run(any_script()).play();
}

}  // namespace
}  // namespace capstan::server
