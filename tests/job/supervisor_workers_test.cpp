// Workers of a supervised job that are lost, replaced, or report wrong input.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/base/failure.h"
#include "capstan/user_error.h"

#include "job/supervised.h"

namespace capstan::job {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST_F(SupervisorTest, AWorkerThatDoesNotJoinIsLeftOut) {
  options_.join_timeout = std::chrono::seconds(2);
  begin(2, false, 1);
  ASSERT_TRUE(events_.await_message("worker 1 is lost"));
  workers_[0]->allow(4);
  workers_[0]->leave();
  const auto result = result_.get();
  EXPECT_EQ(result.lost_workers, 1u);
  EXPECT_EQ(result.reached.steps, 4u);
  EXPECT_EQ(result.problem, "");
  EXPECT_THAT(events_.messages(), Contains("worker 0 joined"));
  EXPECT_THAT(events_.messages(),
              Contains("worker 1 is lost (did not join in time): training continues without it"));
}

TEST_F(SupervisorTest, ALostWorkerIsReportedOnceAndTheOthersContinue) {
  begin(2);
  allow(2);
  await_updates(1);
  workers_[1]->die();
  processes_.end({false, 1, {137, 9}, "capstan: out of memory"});
  ASSERT_TRUE(events_.await_message("worker 1 is lost"));
  workers_[0]->allow(2);
  workers_[0]->leave();
  const auto result = result_.get();
  EXPECT_EQ(result.lost_workers, 1u);
  EXPECT_EQ(result.reached.steps, 4u);
  EXPECT_FALSE(result.interrupted);
  const auto messages = events_.messages();
  EXPECT_EQ(std::ranges::count_if(messages, [](const auto& m) { return m.starts_with("worker 1 is lost"); }),
            1);
}

TEST_F(SupervisorTest, ReportsWhyAProcessEnded) {
  begin(2);
  allow(2);
  await_updates(1);
  processes_.end({false, 1, {137, 9}, "capstan: out of memory"});
  ASSERT_TRUE(events_.await_message(
      "worker 1 is lost (killed by signal 9 (Killed), last log line: out of memory): training continues "
      "without it"));
  workers_[1]->die();
  workers_[0]->allow(2);
  workers_[0]->leave();
  EXPECT_EQ(result_.get().lost_workers, 1u);
}

// A process that was stopped long enough to be lost, and replaced by another, ends at last.
TEST_F(SupervisorTest, TheEndOfAProcessDoesNotEndItsReplacement) {
  begin(3);
  allow(2);
  await_updates(1);
  workers_[1]->die();
  ASSERT_TRUE(events_.await_message("worker 1 is lost (the servers lost contact)"));
  workers_[1] = std::make_unique<SteppingWorker>(*cluster_, 1);
  auto observer = client::Observer::join(cluster_->link_options(), cluster_->connector());
  ASSERT_TRUE(observer) << observer.status().message();
  ASSERT_TRUE(testing::eventually([&] {
    const auto status = (*observer)->status();
    return status && status->workers.at(1).state == wire::WorkerState::kLive;
  }));
  observer->reset();
  ASSERT_TRUE(processes_.await_polls());
  processes_.end({false, 1, {1, 0}, "capstan: declared lost"});
  ASSERT_TRUE(processes_.await_polls());
  allow(4);
  for (auto& worker : workers_) worker->leave();
  const auto result = result_.get();
  EXPECT_EQ(result.lost_workers, 0u);
  EXPECT_EQ(result.reached.steps, 6u);
}

TEST_F(SupervisorTest, AProcessThatEndsBeforeItJoinedIsReportedToTheServers) {
  begin(1, true, 1);
  processes_.end({false, 1, {1, 0}, "capstan: no memory"});
  ASSERT_TRUE(events_.await_message("worker 1 is lost (exit code 1, last log line: no memory)"));
  workers_[0]->allow(2);
  workers_[0]->leave();
  EXPECT_EQ(result_.get().lost_workers, 1u) << "and the others do not wait for it";
}

TEST_F(SupervisorTest, WithoutAnyWorkerTheJobIsLost) {
  begin(2);
  allow(1);
  for (auto& worker : workers_) worker->die();
  try {
    (void)result_.get();
    ADD_FAILURE() << "the job did not fail";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), kLost);
    EXPECT_THAT(failure.what(), HasSubstr("all 2 workers are lost"));
  }
  EXPECT_TRUE(processes_.awaited()) << "the leader marks the run as finished";
}

TEST_F(SupervisorTest, WrongInputOfAllWorkersIsTheErrorOfTheJob) {
  begin(2);
  allow(1);
  for (auto& worker : workers_) worker->die();
  for (std::size_t rank : {0, 1}) processes_.end({false, rank, {2, 0}, "capstan: it does not fit"});
  try {
    (void)result_.get();
    ADD_FAILURE() << "the job did not fail";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "it does not fit");
  }
}

TEST_F(SupervisorTest, WrongInputOfAWorkerEndsTheJobAfterACheckpoint) {
  begin(100);
  allow(2);
  await_updates(1);
  workers_[1]->die();
  processes_.end({false, 1, {kWrongUsage, 0}, "capstan: image 7 cannot be read"});
  ASSERT_TRUE(events_.await_message("stopping: a worker failed"));
  workers_[0]->allow(1000);
  try {
    (void)result_.get();
    ADD_FAILURE() << "the job did not fail";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "image 7 cannot be read");
  }
  EXPECT_GE(newest_checkpoint(), 2u);
  EXPECT_EQ(saved_weight(), 1 - static_cast<float>(newest_checkpoint()) * kRate);
}

}  // namespace
}  // namespace capstan::job
