// A supervised job that the user interrupts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/base/failure.h"

#include "job/supervised.h"

namespace capstan::job {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(SupervisorTest, AnInterruptLetsWorkersFinishTheirStepAndSaves) {
  begin(100);
  allow(2);
  await_updates(1);
  stop_.request();
  ASSERT_TRUE(events_.await_message("stopping: the workers finish their step (Ctrl-C again to kill)"));
  allow(1000);  // the current step; its answer ends the job
  const auto result = result_.get();
  EXPECT_TRUE(result.interrupted);
  EXPECT_GE(result.reached.steps, 2u);
  EXPECT_EQ(result.checkpoint, result.reached.steps);
  EXPECT_EQ(newest_checkpoint(), result.reached.steps);
  EXPECT_EQ(result.lost_workers, 0u);
  EXPECT_TRUE(processes_.killed().empty());
  EXPECT_EQ(saved_weight(), 1 - static_cast<float>(result.reached.steps) * kRate);
}

TEST_F(SupervisorTest, AnInterruptDoesNotWaitForALongStep) {
  begin(100);
  allow(2);
  await_updates(1);
  stop_.request();
  ASSERT_TRUE(events_.await_message("stopping"));
  clock_.advance(std::chrono::seconds(6));
  const auto result = result_.get();
  EXPECT_THAT(events_.messages(), Contains("a step takes longer than 5 s: saving step 2 without it"));
  EXPECT_EQ(processes_.killed(), (std::set<std::size_t>{0, 1}));
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.reached.steps, 2u);
  EXPECT_EQ(result.lost_workers, 0u) << "they were ended, not lost";
  EXPECT_EQ(newest_checkpoint(), 2u) << "no update is lost";
  EXPECT_EQ(saved_weight(), 1 - 2 * kRate);
  EXPECT_THAT(events_.messages(), Not(Contains(HasSubstr("is lost"))));
}

TEST_F(SupervisorTest, ASecondInterruptEndsAtOnce) {
  begin(100);
  allow(2);
  await_updates(1);
  stop_.request();
  ASSERT_TRUE(events_.await_message("stopping"));
  stop_.request();
  try {
    (void)result_.get();
    ADD_FAILURE() << "the job did not fail";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), kInterrupted);
    EXPECT_STREQ(failure.what(), "interrupted; the job did not end in time and was killed");
  }
}

TEST_F(SupervisorTest, AnInterruptBeforeTrainingEndsAtOnce) {
  begin(2, false, 0);
  stop_.request();
  try {
    (void)result_.get();
    ADD_FAILURE() << "the job did not fail";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), kInterrupted);
    EXPECT_STREQ(failure.what(), "interrupted before all workers had joined");
  }
}

TEST_F(SupervisorTest, AnInterruptCancelsTheLastEvaluation) {
  std::promise<void> began;
  evaluate_ = [&](const auto&, const std::atomic<bool>& cancel) -> std::optional<metrics::Evaluation> {
    began.set_value();
    while (!cancel) std::this_thread::yield();
    return {};
  };
  begin(1);
  allow(2);
  for (auto& worker : workers_) worker->leave();
  ASSERT_EQ(began.get_future().wait_for(kTestTimeout), std::future_status::ready);
  stop_.request();
  const auto result = result_.get();
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(saved_weight(), 1 - 2 * kRate);
  EXPECT_EQ(result.checkpoint, 2u);
}

}  // namespace
}  // namespace capstan::job
