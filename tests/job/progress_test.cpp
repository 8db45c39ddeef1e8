#include "capstan/job/progress.h"

#include <gtest/gtest.h>

namespace capstan::job {
namespace {

using wire::WorkerState;

wire::WorkerRow worker(WorkerState state, std::uint64_t steps, std::uint64_t samples, float loss) {
  wire::WorkerRow row;
  row.state = state;
  row.steps = {steps};
  row.samples = samples;
  row.loss = loss;
  return row;
}

StepBudget budget() {
  StepBudget b;
  b.start = {500};
  b.total = 1000;
  b.segment_steps = 40;
  return b;
}

const TimePoint kBegin = TimePoint() + std::chrono::hours(1);

TEST(ProgressCounter, AResumedRunCountsAllUpdatesButItsOwnTime) {
  ProgressCounter counter(budget(), false, 2, kBegin);
  wire::StatusReport status;
  status.version = {600};
  status.seconds = 10;
  const auto p = counter.take(status, kBegin + std::chrono::seconds(30));
  EXPECT_DOUBLE_EQ(p.part(), 0.6);
  EXPECT_DOUBLE_EQ(*p.seconds_left(), 40) << "100 updates in 10 s, and 400 to go";
  status.version = {500};
  EXPECT_EQ(counter.take(status, kBegin).seconds_left(), std::nullopt) << "nothing is done yet";
  status.version = {1005};
  EXPECT_DOUBLE_EQ(counter.take(status, kBegin).part(), 1);
  EXPECT_DOUBLE_EQ(*counter.take(status, kBegin).seconds_left(), 0);
}

TEST(ProgressCounter, LocalStepsAreCountedAsTheyAreComputed) {
  ProgressCounter counter(budget(), true, 2, kBegin);
  wire::StatusReport status;
  status.version = {501};
  status.workers = {worker(WorkerState::kLive, 12, 1, 0), worker(WorkerState::kLive, 8, 1, 0),
                    worker(WorkerState::kLost, 1, 1, 0)};
  const auto p = counter.take(status, kBegin + std::chrono::seconds(20));
  EXPECT_EQ(p.done, 10u) << "the lost worker makes no more steps";
  EXPECT_EQ(p.total, 40u);
  EXPECT_DOUBLE_EQ(*p.seconds_left(), 60);
}

TEST(ProgressCounter, LossIsThatOfComputingWorkers) {
  ProgressCounter counter(budget(), false, 2, kBegin);
  wire::StatusReport status;
  status.workers = {worker(WorkerState::kLive, 1, 8, 0.5f), worker(WorkerState::kLive, 1, 8, 1.5f),
                    worker(WorkerState::kLost, 1, 8, 100), worker(WorkerState::kLive, 0, 0, 0),
                    worker(WorkerState::kAbsent, 0, 0, 0)};
  EXPECT_DOUBLE_EQ(*counter.take(status, kBegin).loss, 1);
  status.workers.clear();
  EXPECT_EQ(counter.take(status, kBegin).loss, std::nullopt);
}

TEST(ProgressCounter, IsDueAfterItsInterval) {
  ProgressCounter counter(budget(), false, 2, kBegin);
  EXPECT_FALSE(counter.is_due(kBegin + std::chrono::milliseconds(1999)));
  EXPECT_TRUE(counter.is_due(kBegin + std::chrono::seconds(2)));
  (void)counter.take({}, kBegin + std::chrono::seconds(3));
  EXPECT_FALSE(counter.is_due(kBegin + std::chrono::seconds(4)));
  EXPECT_TRUE(counter.is_due(kBegin + std::chrono::seconds(5)));
}

}  // namespace
}  // namespace capstan::job
