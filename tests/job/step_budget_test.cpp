// The budget against a plain count: workers that compute their steps in turn.

#include "capstan/job/step_budget.h"

#include <gtest/gtest.h>

#include "capstan/strategy/strategy.h"

namespace capstan::job {
namespace {

// Each strategy of docs/strategies.md for three workers: pushes per update, and a worker's steps between two
// pushes.
struct Kind {
  std::string strategy;
  std::uint64_t pushes_per_update;
  std::uint64_t steps = 1;
  std::uint64_t epochs = 0;  // instead of steps
};
constexpr std::uint64_t kWorkers = 3, kBatch = 8, kSamples = 500;
const std::vector<Kind> kKinds = {
    {"sync", 3},           {"async", 1},          {"async:damped", 1},     {"batch:2", 2},
    {"ssp:3", 1},          {"backup:1", 3},       {"dc-asgd", 1},          {"dc-asgd-a", 1},
    {"easgd:0.3:4", 1, 4}, {"local-sgd:5", 3, 5}, {"diloco:7", 3, 7},      {"decoupled-diloco:6:2:1s", 2, 6},
    {"fedavg:1", 3, 0, 1}, {"fedavg:2", 3, 0, 2}, {"fedbuff:4:3:1", 4, 3},
};

// Workers that compute in turn, each its part of a global batch, so that all make the same number of steps.
class PlainRun {
 public:
  explicit PlainRun(std::uint64_t epochs) : left_(epochs, kSamples) {}

  // One step of every worker of this segment; false if no sample is left.
  bool step(std::uint64_t global_batch) {
    while (epoch_ < left_.size() && left_[epoch_] == 0) ++epoch_;
    if (epoch_ == left_.size()) return false;
    left_[epoch_] -= std::min(left_[epoch_], global_batch);
    return true;
  }
  std::uint64_t epoch() const { return epoch_; }
  bool epoch_is_over() const { return left_[epoch_] == 0; }
  double begun(std::uint64_t epoch) const { return 1 - static_cast<double>(left_[epoch]) / kSamples; }

 private:
  std::vector<std::uint64_t> left_;  // samples, by epoch
  std::uint64_t epoch_ = 0;
};

struct Segment {
  std::uint64_t workers, batch, steps;
};

config::JobConfig job(const std::string& strategy, std::uint32_t epochs, std::uint64_t max_steps = 0) {
  config::JobConfig config;
  config.strategy = strategy;
  config.workers = kWorkers;
  config.batch_size = kBatch;
  config.epochs = epochs;
  config.max_steps = max_steps;
  return config;
}

void expect_as_counted(const Kind& kind, std::uint32_t epochs, const std::vector<Segment>& before) {
  SCOPED_TRACE(kind.strategy + " after " + std::to_string(before.size()) + " segments");
  PlainRun run(epochs);
  checkpoint::Manifest manifest;
  manifest.version = {before.empty() ? 0u : 1000u};
  std::uint64_t earlier = 0;
  for (const auto& segment : before) {
    for (std::uint64_t i = 0; i < segment.steps; ++i) ASSERT_TRUE(run.step(segment.workers * segment.batch));
    manifest.segments.push_back({segment.batch, std::vector(segment.workers, segment.steps)});
    earlier += segment.steps;
  }
  const auto budget =
      budget_steps(job(kind.strategy, epochs), kSamples, before.empty() ? nullptr : &manifest);
  ASSERT_EQ(budget.epochs.size(), epochs);
  for (std::uint64_t e = 0; e < epochs; ++e)
    EXPECT_NEAR(budget.epochs[e].begun, run.begun(e), 1e-12) << "epoch " << e;

  std::uint64_t steps = 0, since_push = 0, pushes = 0;
  std::vector<std::uint64_t> updates(epochs, manifest.version.value);
  const auto note_updates = [&](std::uint64_t from) {
    for (auto e = from; e < epochs; ++e)
      updates[e] = manifest.version.value + (pushes + kind.pushes_per_update - 1) / kind.pushes_per_update;
  };
  while (run.step(kWorkers * kBatch)) {
    ++steps, ++since_push;
    const bool ends_epoch = run.epoch_is_over();
    const bool last = ends_epoch && run.epoch() + 1 == epochs;
    const bool push =
        kind.epochs > 0 ? ends_epoch && (run.epoch() + 1) % kind.epochs == 0 : since_push == kind.steps;
    if (push || last) pushes += kWorkers, since_push = 0;
    if (ends_epoch) note_updates(run.epoch());
  }
  for (std::uint64_t e = 0; e < epochs; ++e) EXPECT_EQ(budget.epochs[e].end, updates[e]) << "epoch " << e;
  EXPECT_EQ(budget.total, updates.back());
  const bool local = kind.steps > 1 || kind.epochs > 0;
  EXPECT_EQ(budget.scheduled, local ? earlier + steps : budget.total);
  EXPECT_EQ(budget.start, manifest.version);
  EXPECT_EQ(budget.samples, kSamples);
}

TEST(StepBudget, CountsTheUpdatesOfEveryStrategy) {
  for (const auto& kind : kKinds) expect_as_counted(kind, 4, {});
}

TEST(StepBudget, CountsTheRestOfResumedSegments) {
  for (const auto& kind : kKinds) {
    expect_as_counted(kind, 4, {{2, 8, 40}});              // up to the second epoch
    expect_as_counted(kind, 4, {{2, 8, 40}, {5, 3, 27}});  // then with other workers and batches
    expect_as_counted(kind, 3, {{4, 16, 8}});              // one whole epoch
    expect_as_counted(kind, 2, {{1, 8, 63}, {3, 8, 21}});  // nothing is left
  }
}

TEST(StepBudget, CoversEveryStrategy) {
  for (const auto& entry : strategy::table()) {
    const auto of = [&](const Kind& k) { return k.strategy.substr(0, k.strategy.find(':')) == entry.name; };
    EXPECT_TRUE(std::ranges::any_of(kKinds, of)) << entry.name << " is not in this test";
  }
}

TEST(StepBudget, EndsAtMaxSteps) {
  // 500 samples ÷ (3 × 8): 21 steps per epoch.
  const auto sync = budget_steps(job("sync", 4, 50), kSamples, nullptr);
  EXPECT_EQ(sync.per_epoch, 21u);
  EXPECT_EQ(sync.total, 50u);
  EXPECT_EQ(sync.segment_steps, 50u);
  const auto async = budget_steps(job("async", 4, 60), kSamples, nullptr);
  EXPECT_EQ(async.per_epoch, 63u);
  EXPECT_EQ(async.segment_steps, 20u);
  // Each update takes 5 steps of every worker; 84 steps are less than those of 100 updates.
  EXPECT_EQ(budget_steps(job("local-sgd:5", 4, 7), kSamples, nullptr).segment_steps, 35u);
  EXPECT_EQ(budget_steps(job("local-sgd:5", 4, 7), kSamples, nullptr).scheduled, 35u);
  EXPECT_EQ(budget_steps(job("local-sgd:5", 4, 100), kSamples, nullptr).segment_steps, 84u);
}

TEST(StepBudget, OneProcessMakesEveryStepItself) {
  auto config = job("single", 2);
  const auto budget = budget_steps(config, kSamples, nullptr);
  EXPECT_EQ(budget.total, 2u * 63) << "500 samples in batches of 8";
  config.strategy = "allreduce";
  EXPECT_EQ(budget_steps(config, kSamples, nullptr).total, 2u * 21);
}

TEST(StepBudget, SwitchesUseTheCurrentStrategy) {
  auto config = job("sync", 2);
  config.switches = "10=async";
  // 42 steps of each of 3 workers: 10 updates of 3 pushes, then 126 - 30 of one.
  EXPECT_EQ(budget_steps(config, kSamples, nullptr).total, 10u + 96);
}

TEST(StepBudget, ComputesTheEpochOfAVersion) {
  const auto budget = budget_steps(job("sync", 2), kSamples, nullptr);
  EXPECT_DOUBLE_EQ(budget.epoch_of({0}), 0);
  EXPECT_DOUBLE_EQ(budget.epoch_of({7}), 7.0 / 21);
  EXPECT_DOUBLE_EQ(budget.epoch_of({21}), 1);
  EXPECT_DOUBLE_EQ(budget.epoch_of({42}), 2);
  // 21 steps an epoch, and an update every 50: the first in the third epoch, the last at the end.
  const auto rare = budget_steps(job("diloco:50", 4), kSamples, nullptr);
  EXPECT_DOUBLE_EQ(rare.epoch_of({1}), 3);
  EXPECT_DOUBLE_EQ(rare.epoch_of({2}), 4);
  EXPECT_DOUBLE_EQ(budget.epoch_of({50}), 2) << "with lost workers there are more updates than planned";
  // Resumed in the middle of the second epoch: 128 of its 500 samples are done.
  checkpoint::Manifest manifest;
  manifest.version = {40};
  manifest.segments = {{8, {40, 40}}};
  const auto resumed = budget_steps(job("sync", 2), kSamples, &manifest);
  EXPECT_DOUBLE_EQ(resumed.epoch_of({40}), 1 + 128.0 / 500);
  EXPECT_DOUBLE_EQ(resumed.epoch_of({48}), 1 + 128.0 / 500 + 372.0 / 500 * 8 / 16) << "16 steps are left";
}

// Two of three workers have made steps of later epochs: 0.75 of the first epoch, 0.5 of the second and 0.25
// of the third are done at update 40. Epochs end at updates 50, 70 and 100.
TEST(StepBudget, WorkersInSeveralEpochsDoNotTurnTheEpochBack) {
  StepBudget budget;
  budget.start = {40};
  budget.epochs = {{50, 0.75}, {70, 0.5}, {100, 0.25}};
  EXPECT_DOUBLE_EQ(budget.epoch_of({40}), 1.5);
  EXPECT_DOUBLE_EQ(budget.epoch_of({45}), 1.5 + 0.25 * 5 / 10);
  EXPECT_DOUBLE_EQ(budget.epoch_of({50}), 1.75);
  EXPECT_DOUBLE_EQ(budget.epoch_of({60}), 1.75 + 0.5 * 10 / 20);
  EXPECT_DOUBLE_EQ(budget.epoch_of({70}), 2.25);
  EXPECT_DOUBLE_EQ(budget.epoch_of({80}), 2.25 + 0.75 * 10 / 30);
  EXPECT_DOUBLE_EQ(budget.epoch_of({100}), 3);
}

// 63 steps of 8 samples are an epoch of one worker; 100 steps are one epoch and 37 × 8 of the next 500
// samples.
TEST(StepBudget, CountsEpochsBeyondTheLastOfThisRun) {
  checkpoint::Manifest manifest;
  manifest.version = {100};
  manifest.segments = {{8, {100}}};
  auto config = job("single", 1);
  EXPECT_DOUBLE_EQ(budget_steps(config, kSamples, &manifest).epoch_of({100}), 1 + 37 * 8 / 500.0);
  manifest.segments = {{8, {4 * 63}}};
  EXPECT_DOUBLE_EQ(budget_steps(config, kSamples, &manifest).epoch_of({100}), 4);
}

}  // namespace
}  // namespace capstan::job
