// Progress, evaluations and the end of a supervised job.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/base/failure.h"
#include "capstan/user_error.h"

#include "job/supervised.h"

namespace capstan::job {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST_F(SupervisorTest, EvaluatesEachEpochAndTheEnd) {
  begin(2);
  allow(2);
  await_updates(1);
  allow(2);
  for (auto& worker : workers_) worker->leave();
  const auto result = result_.get();
  EXPECT_EQ(result.reached.steps, 4u);
  EXPECT_EQ(result.reached.epochs, 2);
  EXPECT_EQ(result.train_loss, 0.5);
  EXPECT_EQ(result.lost_workers, 0u);
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(result.problem, "");
  EXPECT_EQ(result.checkpoint, 4u);
  EXPECT_EQ(newest_checkpoint(), 4u);
  const auto evaluations = events_.evaluations();
  ASSERT_EQ(evaluations.size(), 2u);
  EXPECT_EQ(evaluations[0].version, Version{2});
  EXPECT_EQ(evaluations[0].epoch, 1);
  EXPECT_EQ(evaluations[0].test.values.at(1), 1 - 2 * kRate) << "two steps with a gradient of 1";
  EXPECT_EQ(evaluations[1].version, Version{4});
  EXPECT_EQ(result.test.values.at(1), 1 - 4 * kRate);
  EXPECT_EQ(saved_weight(), 1 - 4 * kRate);
  EXPECT_THAT(testing::contents(run_ / "metrics.jsonl"), HasSubstr(R"({"kind":"checkpoint","step":4})"));
}

TEST_F(SupervisorTest, ReportsProgressOncePerInterval) {
  begin(2);
  allow(2);
  await_updates(1);
  EXPECT_TRUE(events_.reports().empty()) << "no time has passed";
  clock_.advance(std::chrono::seconds(2));
  allow(2);
  for (auto& worker : workers_) worker->leave();
  (void)result_.get();
  ASSERT_EQ(events_.reports().size(), 1u);
  EXPECT_EQ(events_.reports()[0].total, 4u);
}

TEST_F(SupervisorTest, AFailedEvaluationDoesNotEndTheJob) {
  evaluate_ = [](const auto& weights, const auto&) -> std::optional<metrics::Evaluation> {
    if (weights[0] == 1 - 2 * kRate) throw std::runtime_error("out of memory");
    return testing::classified(weights[0], 0.5, 1, 10);
  };
  begin(2);
  allow(2);
  ASSERT_TRUE(events_.await_message("step 2 could not be evaluated: out of memory"));
  allow(2);
  for (auto& worker : workers_) worker->leave();
  const auto result = result_.get();
  EXPECT_EQ(result.reached.steps, 4u);
  EXPECT_EQ(result.test.values.at(1), 1 - 4 * kRate);
  EXPECT_EQ(result.problem, "");
}

TEST_F(SupervisorTest, AFailedLastEvaluationIsReportedAfterTheCheckpoint) {
  evaluate_ = [](const auto&, const auto&) -> std::optional<metrics::Evaluation> {
    throw std::runtime_error("out of memory");
  };
  begin(1);
  allow(2);
  for (auto& worker : workers_) worker->leave();
  const auto result = result_.get();
  EXPECT_EQ(result.problem, "the last evaluation failed: out of memory");
  EXPECT_THAT(result.json(), HasSubstr(R"("test_loss":null)"));
  EXPECT_EQ(saved_weight(), 1 - 2 * kRate);
  EXPECT_EQ(newest_checkpoint(), 2u);
}

// Such as an image that cannot be read, with --strict: in the first evaluation of 100, and in the only one.
TEST_F(SupervisorTest, WrongInputOfAnEvaluationEndsTheJobAfterACheckpoint) {
  evaluate_ = [](const auto&, const auto&) -> std::optional<metrics::Evaluation> {
    throw UserError("val/cat/3.jpg cannot be read");
  };
  begin(100);
  allow(2);
  ASSERT_TRUE(events_.await_message("stopping: an evaluation failed"));
  for (auto& worker : workers_) worker->allow(1000);
  EXPECT_THAT([&] { (void)result_.get(); }, ThrowsMessage<UserError>("val/cat/3.jpg cannot be read"));
  EXPECT_GE(newest_checkpoint(), 2u);
  EXPECT_LT(newest_checkpoint(), 200u);
  EXPECT_EQ(saved_weight(), 1 - static_cast<float>(newest_checkpoint()) * kRate);
}

TEST_F(SupervisorTest, WrongInputOfTheLastEvaluationIsTheErrorOfTheJob) {
  evaluate_ = [](const auto&, const auto&) -> std::optional<metrics::Evaluation> {
    throw UserError("val/cat/3.jpg cannot be read");
  };
  begin(1);
  allow(2);
  for (auto& worker : workers_) worker->leave();
  EXPECT_THAT([&] { (void)result_.get(); }, ThrowsMessage<UserError>("val/cat/3.jpg cannot be read"));
  EXPECT_EQ(newest_checkpoint(), 2u);
  EXPECT_EQ(saved_weight(), 1 - 2 * kRate);
}

TEST_F(SupervisorTest, WithNothingLeftToTrainThereIsNoTrainingLoss) {
  begin(0);
  for (auto& worker : workers_) worker->leave();
  const auto result = result_.get();
  EXPECT_EQ(result.train_loss, std::nullopt);
  EXPECT_EQ(result.problem, "");
  EXPECT_EQ(result.test.values.at(1), 1) << "the initial weights are evaluated";
}

TEST_F(SupervisorTest, WhenWorkersLeaveEarlyTheJobIsUnfinished) {
  begin(100);
  allow(2);
  await_updates(1);
  for (auto& worker : workers_) worker->leave();
  const auto result = result_.get();
  EXPECT_EQ(result.problem, "all workers left after 2 of 200 updates");
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(newest_checkpoint(), 2u);
}

TEST_F(SupervisorTest, AServerThatEndsIsNamed) {
  begin(2);
  allow(2);
  await_updates(1);
  processes_.end({true, 0, {139, 11}, "server: broken"});
  try {
    (void)result_.get();
    ADD_FAILURE() << "the job did not fail";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), kLost);
    EXPECT_STREQ(failure.what(),
                 "server 0 is lost (killed by signal 11 (Segmentation fault)): training cannot continue; "
                 "last log line: server: broken");
  }
}

}  // namespace
}  // namespace capstan::job
