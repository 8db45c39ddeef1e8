// Groups of tensors: which orders follow which events, and invariants under random events.

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
#include "capstan/server/coordinator.h"
#include "server/group_play.h"

namespace capstan::server {
namespace {

// More cases than the library's default of 100, unless RC_PARAMS is set.
[[maybe_unused]] const int kMoreCases = ::setenv("RC_PARAMS", "max_success=2000", 0);

TEST(GroupOrders, OfSyncBesideAsync) {
  Play play("default=sync,x=async");
  play.begin();
  EXPECT_EQ(play.push(1), (Texts{"apply 1/0 at 0: 1#1"})) << "released by x, not by the default";
  EXPECT_EQ(play.push(0), (Texts{"apply 0/0 at 0: 0#1 1#1", "apply 1/1 at 0: 0#1", "deliver 0 v1 in 1",
                                 "deliver 1 v1 in 1"}));
  EXPECT_EQ(play.push(0), (Texts{"apply 1/2 at 1: 0#2"}));
  EXPECT_EQ(play.push(1), (Texts{"apply 0/1 at 1: 0#2 1#2", "apply 1/3 at 1: 1#2", "deliver 0 v2 in 2",
                                 "deliver 1 v2 in 2"}));
  EXPECT_EQ(play.coordinator().versions(), (std::vector<Version>{{2}, {4}}));
  EXPECT_EQ(play.settled(), 4) << "once for each event that updated";
}

TEST(GroupOrders, OfAsyncBesideBatch) {
  Play play("default=async,x=batch:2", 3);
  play.begin();
  EXPECT_EQ(play.push(2), (Texts{"apply 0/0 at 0: 2#1"}));
  EXPECT_EQ(play.push(0), (Texts{"apply 0/1 at 1: 0#1", "apply 1/0 at 1: 0#1 2#1", "deliver 0 v2 in 2",
                                 "deliver 2 v2 in 1"}));
  EXPECT_EQ(play.push(0), (Texts{"apply 0/2 at 2: 0#2"}));
  EXPECT_EQ(play.lose(0), (Texts{"drop 1: 0#2"})) << "what x had not used yet; the default has it";
  EXPECT_EQ(play.push(1), (Texts{"apply 0/3 at 3: 1#1"}));
  EXPECT_EQ(play.lose(2), (Texts{"apply 1/1 at 4: 1#1", "deliver 1 v4 in 4"}))
      << "one push is enough with one live worker";
}

// A late or slow worker delays faster workers only in the group with ssp.
TEST(GroupOrders, OfAsyncBesideSsp) {
  Play play("default=async,x=ssp:1");
  play.begin();
  EXPECT_EQ(play.push(0), (Texts{"apply 0/0 at 0: 0#1", "apply 1/0 at 0: 0#1", "deliver 0 v1 in 1"}));
  EXPECT_EQ(play.push(0), (Texts{"apply 0/1 at 1: 0#2", "apply 1/1 at 1: 0#2"}));
  EXPECT_EQ(play.push(1),
            (Texts{"apply 0/2 at 2: 1#1", "apply 1/2 at 2: 1#1", "deliver 0 v3 in 2", "deliver 1 v3 in 3"}));
}

// Staleness counts from the group's version when the weights were sent, not from the job's.
TEST(GroupOrders, OfBackupCountFromWhatTheGroupWas) {
  Play play("default=async,x=backup:1", 3);
  play.begin();
  EXPECT_EQ(play.push(0), (Texts{"apply 0/0 at 0: 0#1"}));
  EXPECT_EQ(play.push(1), (Texts{"apply 0/1 at 1: 1#1", "apply 1/0 at 1: 0#1 1#1", "deliver 0 v2 in 1",
                                 "deliver 1 v2 in 2"}));
  EXPECT_EQ(play.push(2), (Texts{"apply 0/2 at 2: 2#1", "drop 1: 2#1", "deliver 2 v3 in 3"}))
      << "its step in group x is over";
  play.reads(2, 3);
  EXPECT_EQ(play.push(2), (Texts{"apply 0/3 at 3: 2#2"})) << "this push is for the current step";
  EXPECT_EQ(play.coordinator().report().dropped_pushes, 0u) << "the default dropped none";
}

TEST(GroupOrders, EndWithTheDefault) {
  Play play("default=async,x=sync", 2, 2);
  play.begin();
  EXPECT_EQ(play.push(0), (Texts{"apply 0/0 at 0: 0#1"}));
  EXPECT_EQ(play.push(1), (Texts{"apply 0/1 at 1: 1#1", "apply 1/0 at 1: 0#1 1#1", "deliver 0 v2 in 1 stop",
                                 "deliver 1 v2 in 2 stop"}))
      << "the event that ends the default group is the last for all groups";
  EXPECT_EQ(play.push(0), (Texts{"drop 0: 0#2", "drop 1: 0#2", "deliver 0 v2 in 0 stop"}));

  Play held("default=async,x=sync", 2, 1);
  held.begin();
  EXPECT_EQ(held.push(1), (Texts{"apply 0/0 at 0: 1#1", "drop 1: 1#1", "deliver 1 v1 in 1 stop"}));
  EXPECT_EQ(held.coordinator().versions(), (std::vector<Version>{{1}, {0}}));
}

TEST(GroupOrders, EndWhenTheyAreToStop) {
  Play play("default=sync,x=async");
  play.begin();
  EXPECT_EQ(play.push(0), (Texts{"apply 1/0 at 0: 0#1"}));
  EXPECT_EQ(play.stop(), (Texts{"drop 0: 0#1", "deliver 0 v0 in 0 stop"}));
  EXPECT_EQ(play.push(1), (Texts{"drop 0: 1#1", "drop 1: 1#1", "deliver 1 v0 in 0 stop"}));
}

// After a broken connection the worker pulls again; a release by one group does not count for the other.
TEST(GroupOrders, AreNotHurriedByAPullThatComesAgain) {
  Play play("default=sync,x=async");
  play.begin();
  EXPECT_EQ(play.push(0), (Texts{"apply 1/0 at 0: 0#1"}));
  EXPECT_EQ(play.pull(0), Texts());
  EXPECT_EQ(play.pull(0), Texts());
  EXPECT_EQ(play.push(1), (Texts{"apply 0/0 at 0: 0#1 1#1", "apply 1/1 at 0: 1#1", "deliver 0 v1 in 1",
                                 "deliver 1 v1 in 1"}));
  EXPECT_EQ(play.pull(1), (Texts{"deliver 1 v1 in 1"})) << "the answer was lost and is repeated";
  EXPECT_EQ(play.push(0), (Texts{"apply 1/2 at 1: 0#2"}));
}

TEST(GroupOrders, CountAPushOnce) {
  Play play("default=async,x=async,y=sync", 2);
  play.begin();
  play.push(0, 2);
  play.push(1, 4);
  const auto report = play.coordinator().report();
  EXPECT_EQ(report.version.value, 2u);
  EXPECT_EQ(report.samples, 16u);
  EXPECT_DOUBLE_EQ(report.loss, 3);
  EXPECT_EQ(report.workers[0].pushes, 1u);
  EXPECT_EQ(play.coordinator().pushes(), std::vector<std::uint64_t>{2});
  EXPECT_EQ(play.coordinator().pulls(), 4u) << "two at the start";
  EXPECT_EQ(play.coordinator().steps_done(), (std::vector<std::uint64_t>{1, 1}));
}

TEST(GroupOrders, GiveObserversAllGroupsOfAnEvent) {
  Play play("default=async,x=sync", 1);
  play.begin();
  EXPECT_EQ(play.observe(1), Texts());
  EXPECT_EQ(play.push(0),
            (Texts{"apply 0/0 at 0: 0#1", "apply 1/0 at 0: 0#1", "observer 0 v1 in 0", "deliver 0 v1 in 1"}));
}

// Groups with the same strategy decide the same as one group.
TEST(GroupOrders, OfTheSameStrategyAreThoseOfOne) {
  Play one("sync", 3), two("default=sync,x=sync", 3);
  one.begin();
  two.begin();
  for (const std::uint32_t w : {2u, 0u, 1u, 1u, 2u, 0u, 0u}) {
    Texts of_one = one.push(w), of_default;
    for (const auto& order : two.push(w))
      if (!order.starts_with("apply 1/")) of_default.push_back(order);
    EXPECT_EQ(of_one, of_default);
  }
  EXPECT_EQ(two.coordinator().versions(), (std::vector<Version>{{2}, {2}}));
}

// ---- resuming ----

TEST(GroupMarks, SayWhatEachGroupHas) {
  Play play("default=async,x=sync");
  play.begin();
  play.push(0);
  EXPECT_EQ(play.coordinator().marks(), (std::vector<checkpoint::HighWaterMark>{{{0}, {100}, {1}, 0}}));
  play.push(1);
  EXPECT_EQ(play.coordinator().marks(),
            (std::vector<checkpoint::HighWaterMark>{
                {{0}, {100}, {1}, 0}, {{0}, {100}, {1}, 1}, {{1}, {200}, {1}, 0}, {{1}, {200}, {1}, 1}}));
}

TEST(GroupMarks, LetAPushComeAgainForTheGroupsThatLackIt) {
  Play play("default=async,x=sync");
  play.coordinator().resume(
      {{7}, {3}}, {{{0}, {100}, {5}, 0}, {{0}, {100}, {4}, 1}, {{1}, {200}, {4}, 0}, {{1}, {200}, {4}, 1}});
  play.begin();
  EXPECT_EQ(play.push_number(0, 5), Texts()) << "the default has it, and x waits for the other";
  EXPECT_EQ(play.push_number(1, 5), (Texts{"apply 0/7 at 7: 1#5", "apply 1/3 at 7: 0#5 1#5",
                                           "deliver 0 v8 in 0", "deliver 1 v8 in 8"}));
  EXPECT_EQ(play.push_number(0, 6), (Texts{"apply 0/8 at 8: 0#6"}));
  EXPECT_EQ(play.coordinator().versions(), (std::vector<Version>{{9}, {4}}));
}

TEST(GroupMarks, AreNotThoseOfAnotherIncarnation) {
  Play play("default=async,x=async", 1);
  play.coordinator().resume({{7}, {3}}, {{{0}, {55}, {5}, 0}, {{0}, {55}, {5}, 1}});
  play.begin();
  EXPECT_EQ(play.push(0), (Texts{"apply 0/7 at 7: 0#1", "apply 1/3 at 7: 0#1", "deliver 0 v8 in 8"}));
}

// ---- random events ----

using PushKey = std::pair<std::uint32_t, std::uint64_t>;  // worker, sequence

struct Script {
  std::uint32_t workers = 1;
  std::vector<std::string> strategies;  // by group
  std::vector<double> step_seconds;     // by worker
  double jitter = 0;
  std::uint64_t seed = 0;
  int pushes = 0;
  std::uint64_t max_steps = 0;
  std::map<int, std::uint32_t> changes;  // a worker is lost or rejoins before the n-th push
};

std::string any_strategy(std::uint32_t workers) {
  switch (*rc::gen::inRange(0, 6)) {
    case 0:
      return "sync";
    case 1:
      return "async";
    case 2:
      return fmt::format("batch:{}", *rc::gen::inRange<std::uint32_t>(1, workers + 1));
    case 3:
      return fmt::format("ssp:{}", *rc::gen::inRange(0, 4));
    case 4:
      return fmt::format("backup:{}", *rc::gen::inRange<std::uint32_t>(0, workers));
    default:
      return "dc-asgd:0.1";
  }
}

Script any_script() {
  Script s;
  s.workers = *rc::gen::inRange<std::uint32_t>(1, 7);
  const int groups = *rc::gen::inRange(2, 5);
  for (int g = 0; g < groups; ++g) s.strategies.push_back(any_strategy(s.workers));
  for (std::uint32_t w = 0; w < s.workers; ++w)
    s.step_seconds.push_back(*rc::gen::element(0.1, 0.1, 0.1, 0.12, 0.2, 0.3, 1.0, 10.0));
  s.jitter = *rc::gen::element(0.0, 0.2, 3.0);
  s.seed = *rc::gen::arbitrary<std::uint64_t>();
  s.pushes = *rc::gen::inRange(1, 80);
  s.max_steps = *rc::gen::element<std::uint64_t>(0, 0, 0, 5, 20);
  const int changes = *rc::gen::inRange(0, 8);
  for (int i = 0; i < changes; ++i)
    s.changes[*rc::gen::inRange(0, s.pushes)] = *rc::gen::inRange<std::uint32_t>(0, s.workers);
  return s;
}

std::string spelling(const Script& s) {
  auto out = "default=" + s.strategies[0];
  for (std::size_t g = 1; g < s.strategies.size(); ++g) out += fmt::format(",g{}={}", g, s.strategies[g]);
  return out;
}

// Runs a script. Push counts, versions and the state of each push are tracked here, from the orders only.
class WorkerHistory {
 public:
  explicit WorkerHistory(const Script& script)
      : script_(script),
        random_(script.seed),
        coordinator_({spelling(script), script.workers, 1, script.max_steps}),
        versions_(script.strategies.size()) {
    coordinator_.set_groups(testing::groups_of(spelling(script), script.workers));
  }

  void play() {
    for (std::uint32_t w = 0; w < script_.workers; ++w) come(w);
    note(coordinator_.initialized(ServerId{0}, kNow));
    started_ = true;
    take();
    for (int made = 0, changed = -1; made < script_.pushes && !live_.empty();) {
      const auto change = script_.changes.find(made);
      if (change != script_.changes.end() && changed != made) {
        changed = made;
        live_.contains(change->second) ? go(change->second) : come(change->second);
        continue;
      }
      RC_ASSERT(!computing_.empty());  // else a worker waits forever
      const auto [at, worker] = *computing_.begin();
      computing_.erase(computing_.begin());
      now_ = at;
      ++made;
      push(worker);
    }
    note(coordinator_.stop(kNow));
    ending_ = true;
    take();
    for (const auto& [key, groups] : settled_) RC_ASSERT(groups.size() == versions_.size());
    for (const auto& [id, worker] : live_) RC_ASSERT(!worker.waits);
    for (std::size_t g = 0; g < versions_.size(); ++g)
      RC_ASSERT(coordinator_.versions()[g].value == versions_[g]);
    RC_ASSERT(coordinator_.report().dropped_pushes == dropped_);
  }

 private:
  struct Worker {
    std::uint64_t clock = 0;  // pushes; a new worker starts at those of the slowest
    bool waits = true;
    std::optional<PushKey> push;  // whose answer it waits for
    std::vector<std::uint64_t> given;
  };

  std::uint64_t slowest() const {
    std::uint64_t least = UINT64_MAX;
    for (const auto& [id, worker] : live_) least = std::min(least, worker.clock);
    return least;
  }
  bool ends() const { return ending_ || (script_.max_steps > 0 && versions_[0] >= script_.max_steps); }

  void come(std::uint32_t w) {
    RC_ASSERT(coordinator_.admit(wire::Role::kWorker, w, {++lives_}).status().is_ok());
    Worker worker;
    worker.clock = live_.empty() ? 0 : slowest();
    live_[w] = worker;
    sequences_[w] = 0;
    incarnations_[w] = lives_;
    note(coordinator_.pull({wire::Role::kWorker, w}, {1, {}}, kNow));
    take();
  }
  void go(std::uint32_t w) {
    live_.erase(w);
    std::erase_if(computing_, [&](const auto& c) { return c.second == w; });
    note(coordinator_.member_ended({wire::Role::kWorker, w}, true, kNow));
    take();
  }
  void push(std::uint32_t w) {
    auto& worker = live_.at(w);
    ++worker.clock;
    worker.waits = true;
    const auto sequence = ++sequences_[w];
    worker.push = key(w, sequence);
    settled_[*worker.push] = {};
    made_on_[*worker.push] = worker.given;
    note(coordinator_.pushed({{w}, {incarnations_[w]}, {sequence}, {worker.clock}, {worker.given[0]}, 1 + w},
                             kNow));
    take();
  }
  // Sequences start again with each incarnation.
  PushKey key(std::uint32_t w, std::uint64_t sequence) const {
    return {w, incarnations_.at(w) * 1'000'000 + sequence};
  }
  void settle(const PushKey& push, std::uint32_t group) {
    RC_ASSERT(settled_.contains(push));
    RC_ASSERT(settled_[push].insert(group).second);
  }

  static constexpr TimePoint kNow{};

  void note(const Actions& actions) {
    for (const auto& action : actions) {
      if (const auto* order = std::get_if<Order>(&action)) orders_.push_back(*order);
    }
  }
  void take() {
    const auto job = versions_[0];
    for (const auto& order : std::exchange(orders_, {})) {
      if (const auto* apply = std::get_if<wire::ApplyOrder>(&order)) {
        const auto g = apply->group;
        RC_ASSERT(apply->before.value == versions_[g]++);
        RC_ASSERT(apply->scheduled.value == (g == 0 ? apply->before.value : job));
        for (const auto& c : apply->contributions) {
          const auto push = key(c.worker.value, c.sequence.value);
          settle(push, g);
          if (script_.strategies[g].starts_with("backup"))
            RC_ASSERT(made_on_[push][g] == apply->before.value);
        }
      } else if (const auto* drop = std::get_if<wire::DropOrder>(&order)) {
        settle(key(drop->worker.value, drop->sequence.value), drop->group);
        if (drop->group == 0) ++dropped_;
      } else {
        deliver(std::get<wire::DeliverOrder>(order));
      }
    }
    check_no_worker_waits_needlessly();
  }

  bool ssp_holds(const Worker& worker) const {
    return std::ranges::all_of(script_.strategies, [&](const std::string& s) {
      return !s.starts_with("ssp:") || worker.clock <= slowest() + std::stoull(s.substr(4));
    });
  }
  bool is_settled(const Worker& worker) const {
    return !worker.push || settled_.at(*worker.push).size() == versions_.size();
  }

  void deliver(const wire::DeliverOrder& order) {
    const auto w = order.member.index;
    auto& worker = live_.at(w);
    RC_ASSERT(worker.waits);
    RC_ASSERT(is_settled(worker));
    RC_ASSERT(ssp_holds(worker) || ends());
    RC_ASSERT(order.reply.version.value == versions_[0]);
    RC_ASSERT(order.reply.stop == ends());
    worker.waits = false;
    worker.given = versions_;
    const auto step = script_.step_seconds[w] * (1 + script_.jitter * random_.uniform());
    computing_.insert({now_ + step, w});
  }

  void check_no_worker_waits_needlessly() const {
    for (const auto& [id, worker] : live_)
      RC_ASSERT(!started_ || !worker.waits || !is_settled(worker) || !(ssp_holds(worker) || ends()));
  }

  const Script& script_;
  Random random_;
  std::vector<Order> orders_;
  Coordinator coordinator_;
  double now_ = 0;
  bool started_ = false, ending_ = false;
  std::vector<std::uint64_t> versions_;  // by group
  std::map<std::uint32_t, Worker> live_;
  std::map<std::uint32_t, std::uint64_t> sequences_, incarnations_;
  std::uint64_t lives_ = 0, dropped_ = 0;
  std::set<std::pair<double, std::uint32_t>> computing_;
  std::map<PushKey, std::set<std::uint32_t>> settled_;     // by which groups
  std::map<PushKey, std::vector<std::uint64_t>> made_on_;  // versions of all groups
};

RC_GTEST_PROP(GroupsProperty, SettleEveryPushOnceInEachGroupAndLetNobodyWaitForEver, ()) {
  const auto script = any_script();
  RC_LOG() << spelling(script) << ", " << script.workers << " workers\n";
  WorkerHistory(script).play();
}

}  // namespace
}  // namespace capstan::server
