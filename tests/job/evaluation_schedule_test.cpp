#include "capstan/job/evaluation_schedule.h"

#include <gtest/gtest.h>

#include "support/evaluations.h"

namespace capstan::job {
namespace {

// Begins at version 10; epochs end at 30, 50 and 70.
StepBudget budget(std::uint64_t total) {
  StepBudget b;
  b.start = {10};
  b.total = total;
  b.samples = 200;
  b.epochs = {{30, 0.5}, {50, 0}, {70, 0}};
  return b;
}

TEST(EvaluationSchedule, NamesTheEndOfEachEpochButTheLast) {
  const EvaluationSchedule schedule(budget(70));
  EXPECT_EQ(schedule.next({10}), Version{30});
  EXPECT_EQ(schedule.next({29}), Version{30});
  EXPECT_EQ(schedule.next({30}), Version{50});
  EXPECT_EQ(schedule.next({50}), std::nullopt) << "the end of the run is always evaluated";
  EXPECT_EQ(schedule.next({90}), std::nullopt);
}

TEST(EvaluationSchedule, SkipsEpochsThatPassedDuringAnEvaluation) {
  EXPECT_EQ(EvaluationSchedule(budget(70)).next({42}), Version{50});
}

TEST(EvaluationSchedule, SchedulesNothingBeyondMaxSteps) {
  const EvaluationSchedule schedule(budget(40));
  EXPECT_EQ(schedule.next({10}), Version{30});
  EXPECT_EQ(schedule.next({30}), std::nullopt);
  EXPECT_EQ(EvaluationSchedule(budget(30)).next({10}), std::nullopt);
}

TEST(EvaluationSchedule, SpreadsTimeEvenlyOverTheUpdatesOfThisRun) {
  const EvaluationSchedule schedule(budget(70));
  EXPECT_DOUBLE_EQ(schedule.seconds_at({30}, {50}, 8), 4) << "20 of 40 updates";
  EXPECT_DOUBLE_EQ(schedule.seconds_at({30}, {30}, 8), 8);
  EXPECT_DOUBLE_EQ(schedule.seconds_at({10}, {10}, 0), 0);
  EXPECT_DOUBLE_EQ(schedule.seconds_at({10}, {12}, 3), 0);
}

TEST(EvaluationSchedule, RecordsEpochAndSamples) {
  const auto record = EvaluationSchedule(budget(70)).record({30}, 4, testing::classified(0.5, 0.75, 1, 100));
  EXPECT_DOUBLE_EQ(record.epoch, 1);
  EXPECT_DOUBLE_EQ(record.samples, 200);
  EXPECT_EQ(record.text(), "epoch 1  step 30  test accuracy 75.00 %  test loss 0.5000");
  // Halfway through the second half of the first epoch: three quarters of it.
  EXPECT_DOUBLE_EQ(EvaluationSchedule(budget(70)).record({20}, 4, {}).samples, 150);
}

}  // namespace
}  // namespace capstan::job
