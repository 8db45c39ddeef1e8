// Whole jobs on a fake clock: workers of different speeds, stragglers, losses and new incarnations drive the
// real engine. The invariants of each strategy are checked from the events only.

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <queue>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "capstan/base/random.h"
#include "capstan/strategy/engine.h"

namespace capstan::strategy {
namespace {

// More cases than the library's default of 100, unless RC_PARAMS is set.
[[maybe_unused]] const int kMoreCases = ::setenv("RC_PARAMS", "max_success=2000", 0);

using PushKey = std::pair<std::uint32_t, std::uint64_t>;  // worker, sequence

// The inputs of a job.
struct Script {
  std::uint32_t workers = 1;
  std::vector<double> step_seconds;  // by worker
  double jitter = 0;                 // part of a step that is random
  std::uint64_t seed = 0;
  int pushes = 0;  // after this many the job ends
  // Before the n-th push this worker is lost or, if it is lost, joins again.
  std::map<int, std::uint32_t> changes;
};

Script any_script(bool with_changes) {
  Script script;
  script.workers = *rc::gen::inRange<std::uint32_t>(1, 7);
  for (std::uint32_t w = 0; w < script.workers; ++w)
    script.step_seconds.push_back(*rc::gen::element(0.1, 0.1, 0.1, 0.12, 0.2, 0.3, 1.0, 10.0));
  script.jitter = *rc::gen::element(0.0, 0.2, 3.0);
  script.seed = *rc::gen::arbitrary<std::uint64_t>();
  script.pushes = *rc::gen::inRange(1, 80);
  const int changes = with_changes ? *rc::gen::inRange(0, 8) : 0;
  for (int i = 0; i < changes; ++i)
    script.changes[*rc::gen::inRange(0, script.pushes)] = *rc::gen::inRange<std::uint32_t>(0, script.workers);
  return script;
}

// The weights that a released worker reads.
struct Read {
  std::uint32_t worker;
  std::uint64_t round;  // of this worker, from 0 for the first weights
  Version version;
  std::set<PushKey> holds;  // every push that was applied to them
};

// Runs a script. The workers' push counts and the applied pushes are tracked here, independently of the
// engine.
class ScriptedJob {
 public:
  ScriptedJob(const std::string& strategy, const Script& script)
      : script_(script),
        random_(script.seed),
        engine_(parse(strategy, script.workers), {}, [this] { return now_; }) {}
  virtual ~ScriptedJob() = default;

  void play() {
    for (std::uint32_t w = 0; w < script_.workers; ++w) join_worker(w);
    take(engine_.begin());
    while (made_ < script_.pushes && !live_.empty()) {
      if (const auto change = script_.changes.find(made_);
          change != script_.changes.end() && changed_ != made_) {
        changed_ = made_;
        live_.contains(change->second) ? lose_worker(change->second) : join_worker(change->second);
        continue;
      }
      // The next event; without one, a worker would wait forever.
      const auto deadline = engine_.deadline();
      RC_ASSERT(!computing_.empty() || deadline);
      if (deadline && (computing_.empty() || *deadline <= computing_.begin()->first)) {
        now_ = std::max(now_, *deadline);
        const auto version = engine_.version();
        take(engine_.tick());
        RC_ASSERT(engine_.version() > version);
        continue;
      }
      const auto [at, worker] = *computing_.begin();
      computing_.erase(computing_.begin());
      now_ = at;
      push(worker);
    }
  }

  const std::vector<Read>& reads() const { return reads_; }
  const std::vector<Decision>& decisions() const { return decisions_; }
  const Engine& engine() const { return engine_; }

 protected:
  struct Worker {
    std::uint64_t clock = 0;  // pushes; starts at that of the slowest worker
    std::uint64_t round = 0;
    Version version;
    bool waits = false;
  };

  // Invariants of a strategy.
  virtual void on_apply(const Apply&, const std::vector<PushKey>&) {}
  virtual void on_drop(const PushKey&) {}
  virtual void on_release(std::uint32_t) {}
  virtual void on_settled() {}

  std::uint64_t slowest() const {
    std::uint64_t least = UINT64_MAX;
    for (const auto& [id, worker] : live_) least = std::min(least, worker.clock);
    return least;
  }

  std::map<std::uint32_t, Worker> live_;
  std::map<PushKey, Version> version_of_;  // that each push was computed on
  std::set<PushKey> waiting_;              // neither applied nor dropped
  std::uint64_t dropped_ = 0;

 private:
  void join_worker(std::uint32_t w) {
    Worker worker;
    worker.clock = live_.empty() ? 0 : slowest();
    live_[w] = worker;
    take(engine_.join({w}));
    live_[w].waits = true;
    take(engine_.pull({w}));
  }
  void lose_worker(std::uint32_t w) {
    live_.erase(w);
    std::erase_if(computing_, [&](const auto& c) { return c.second == w; });
    take(engine_.remove({w}));
  }
  void push(std::uint32_t w) {
    auto& worker = live_.at(w);
    ++made_;
    ++worker.clock;
    worker.waits = true;
    const PushKey key{w, ++sequences_[w]};
    version_of_[key] = worker.version;
    waiting_.insert(key);
    take(engine_.push({{w},
                       {key.second},
                       {worker.clock},
                       worker.version,
                       1 + static_cast<std::uint32_t>(w),
                       worker.version}));
  }
  void take(const std::vector<Decision>& decisions) {
    for (const auto& d : decisions) {
      decisions_.push_back(d);
      std::visit([this](const auto& x) { check(x); }, d);
    }
    on_settled();
  }
  void check(const Apply& apply) {
    RC_ASSERT(apply.before.value == version_.value++);
    std::vector<PushKey> merged;
    for (const auto& m : apply.merged) merged.push_back({m.worker.value, m.sequence.value});
    if (apply.accumulated) merged.insert(merged.end(), accumulated_.begin(), accumulated_.end());
    for (const auto& key : merged) {
      RC_ASSERT(accumulated_.contains(key) || waiting_.erase(key) == 1u);
      RC_ASSERT(applied_.insert(key).second);
    }
    if (apply.accumulated) accumulated_.clear();
    on_apply(apply, merged);
  }
  void check(const Accumulate& accumulate) {
    const PushKey key{accumulate.worker.value, accumulate.sequence.value};
    RC_ASSERT(waiting_.erase(key) == 1u);
    RC_ASSERT(accumulate.first == accumulated_.empty());
    accumulated_.insert(key);
  }
  void check(const Drop& drop) {
    const PushKey key{drop.worker.value, drop.sequence.value};
    RC_ASSERT(waiting_.erase(key) == 1u);
    ++dropped_;
    on_drop(key);
  }
  void check(const Release& release) {
    const auto w = release.worker.value;
    auto& worker = live_.at(w);
    RC_ASSERT(worker.waits);
    RC_ASSERT(release.version == version_);
    worker.waits = false;
    worker.version = version_;
    reads_.push_back({w, worker.round++, version_, applied_});
    on_release(w);
    const auto step = script_.step_seconds[w] * (1 + script_.jitter * random_.uniform());
    computing_.insert({now_ + from_seconds(step), w});
  }

  const Script& script_;
  Random random_;
  TimePoint now_{};
  Engine engine_;
  Version version_;
  int made_ = 0, changed_ = -1;
  std::map<std::uint32_t, std::uint64_t> sequences_;
  std::set<std::pair<TimePoint, std::uint32_t>> computing_;
  std::set<PushKey> applied_, accumulated_;
  std::vector<Read> reads_;
  std::vector<Decision> decisions_;
};

// ---- ssp ----

class SspJob final : public ScriptedJob {
 public:
  SspJob(std::uint64_t bound, const Script& script)
      : ScriptedJob("ssp:" + std::to_string(bound), script), bound_(bound) {}

 private:
  void on_release(std::uint32_t w) override { RC_ASSERT(live_.at(w).clock <= slowest() + bound_); }
  // No worker waits without need.
  void on_settled() override {
    if (!engine().started()) return;
    for (const auto& [id, worker] : live_) RC_ASSERT(!worker.waits || worker.clock > slowest() + bound_);
  }
  const std::uint64_t bound_;
};

RC_GTEST_PROP(Ssp, NoWorkerIsFurtherAheadThanTheBound, ()) {
  SspJob(*rc::gen::inRange<std::uint64_t>(0, 6), any_script(true)).play();
}

RC_GTEST_PROP(Ssp, WithABoundOfZeroReadsWhatSyncReads, ()) {
  const auto script = any_script(false);
  ScriptedJob ssp("ssp:0", script), sync("sync", script);
  ssp.play();
  sync.play();
  // By worker and round: the weights contain the same pushes. The job may end in the middle of a round.
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::set<PushKey>> expected;
  for (const auto& read : sync.reads()) expected[{read.worker, read.round}] = read.holds;
  std::size_t compared = 0;
  for (const auto& read : ssp.reads()) {
    const auto found = expected.find({read.worker, read.round});
    if (found == expected.end()) continue;
    RC_ASSERT(read.holds == found->second);
    ++compared;
  }
  RC_ASSERT(compared == std::min(expected.size(), ssp.reads().size()));
}

std::string text(const Decision& decision) {
  std::string out = std::to_string(decision.index());
  if (const auto* apply = std::get_if<Apply>(&decision)) {
    out += " " + std::to_string(apply->before.value) + " at " + std::to_string(apply->rule.rate);
    for (const auto& m : apply->merged)
      out += " " + std::to_string(m.worker.value) + "#" + std::to_string(m.sequence.value) + "*" +
             std::to_string(m.factor);
  }
  if (const auto* release = std::get_if<Release>(&decision))
    out += " " + std::to_string(release->worker.value) + " " + std::to_string(release->version.value);
  return out;
}

RC_GTEST_PROP(Ssp, WithoutABoundDecidesAsAsync, ()) {
  const auto script = any_script(true);
  ScriptedJob ssp("ssp:inf", script), async("async", script);
  ssp.play();
  async.play();
  RC_ASSERT(ssp.decisions().size() == async.decisions().size());
  for (std::size_t i = 0; i < ssp.decisions().size(); ++i)
    RC_ASSERT(text(ssp.decisions()[i]) == text(async.decisions()[i]));
}

// ---- backup ----

class BackupJob final : public ScriptedJob {
 public:
  BackupJob(std::uint32_t spare, const Script& script)
      : ScriptedJob("backup:" + std::to_string(spare), script), spare_(spare) {}
  void check_count() const { RC_ASSERT(engine().dropped() == dropped_); }

 private:
  void on_apply(const Apply& apply, const std::vector<PushKey>& merged) override {
    RC_ASSERT(merged.size() ==
              std::max<std::size_t>(1, live_.size() - std::min<std::size_t>(spare_, live_.size())));
    for (const auto& key : merged) RC_ASSERT(version_of_.at(key) == apply.before);
  }
  // A push is dropped only if its step was over or its worker is lost.
  void on_drop(const PushKey& key) override {
    RC_ASSERT(!live_.contains(key.first) || version_of_.at(key) < engine().version());
  }
  const std::uint32_t spare_;
};

RC_GTEST_PROP(Backup, UsesAllButTheSparesOfAStepAndCountsDrops, ()) {
  const auto script = any_script(true);
  BackupJob job(*rc::gen::inRange<std::uint32_t>(0, script.workers), script);
  job.play();
  job.check_count();
}

// ---- batch ----

class BatchJob final : public ScriptedJob {
 public:
  BatchJob(std::uint32_t k, const Script& script)
      : ScriptedJob("batch:" + std::to_string(k), script), k_(k) {}

 private:
  void on_apply(const Apply&, const std::vector<PushKey>& merged) override {
    RC_ASSERT(merged.size() == std::min<std::size_t>(k_, live_.size()));
    for (const auto& key : merged) answered_.insert(key.first);
  }
  void on_release(std::uint32_t w) override { answered_.erase(w); }
  // Exactly the workers whose pushes were merged are answered; a worker that joins is answered at once.
  void on_settled() override {
    if (!engine().started()) return;
    RC_ASSERT(answered_.empty());
    for (const auto& [id, worker] : live_) {
      const bool has_pushed = std::ranges::any_of(waiting_, [&](const PushKey& k) { return k.first == id; });
      RC_ASSERT(worker.waits == has_pushed || (!worker.waits && !has_pushed));
    }
  }
  const std::uint32_t k_;
  std::set<std::uint32_t> answered_;
};

RC_GTEST_PROP(Batch, AnswersExactlyTheWorkersOfTheUpdate, ()) {
  const auto script = any_script(true);
  BatchJob(*rc::gen::inRange<std::uint32_t>(1, script.workers + 1), script).play();
}

// ---- all ----

// ScriptedJob::play() asserts that there is always a next event while a worker is live.
RC_GTEST_PROP(EveryStrategy, LetsNoWorkerWaitForever, ()) {
  const auto script = any_script(true);
  const auto& entry = *rc::gen::elementOf(std::vector<Entry>(table().begin(), table().end()));
  RC_LOG() << entry.name << "\n";
  ScriptedJob(entry.name, script).play();
}

}  // namespace
}  // namespace capstan::strategy
