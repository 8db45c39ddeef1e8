// A supervisor with servers and workers as threads of the test, a fake clock and fake processes.

#include "capstan/job/supervisor.h"

#include <condition_variable>
#include <future>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/base/failure.h"
#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/checkpoint/safetensors.h"
#include "capstan/user_error.h"

#include "job/fakes.h"
#include "support/evaluations.h"
#include "support/loopback_cluster.h"
#include "support/temporary_folder.h"

namespace capstan::job {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::LoopbackCluster;
using ::testing::Not;
using testing::TemporaryFolder;

constexpr std::uint32_t kWorkers = 2;
constexpr std::uint64_t kSamples = 16;
constexpr float kRate = 0.125f;
const FlatLayout kLayout({{"weight", {4}}});

// Two workers, batches of 4: two updates per epoch.
config::JobConfig job_config(std::uint32_t epochs) {
  config::JobConfig config;
  config.workers = kWorkers;
  config.batch_size = 4;
  config.epochs = epochs;
  return config;
}

// A worker that computes a step when the test lets it; every gradient is 1.
class Worker {
 public:
  Worker(LoopbackCluster& cluster, std::uint32_t rank)
      : thread_([this, &cluster, rank] { run(cluster, rank); }) {}
  ~Worker() { die(); }

  void allow(int steps) {
    change([&] { allowed_ += steps; });
  }
  // Ends like a killed process, without Leave.
  void die() {
    change([&] { dying_ = true; });
    if (thread_.joinable()) thread_.join();
  }
  // Returns after the allowed steps: all are done, or the worker was asked to stop.
  void leave() {
    change([&] { leaving_ = true; });
  }

 private:
  void run(LoopbackCluster& cluster, std::uint32_t rank) {
    auto options = cluster.worker_options(rank);
    options.silence = kTestTimeout;
    const std::vector<float> initial(kLayout.size(), 1.0f);
    auto client = client::WorkerClient::join(options, cluster.connector(), kLayout, initial);
    if (!client || !(*client)->pull()) return;
    while (may_step()) {
      std::ranges::fill((*client)->gradients(), 1.0f);
      const auto update = (*client)->push_pull({.samples = 4, .loss = 0.5f});
      if (!update) return;
      if (update->stop) break;
    }
    if (!dying_) (*client)->leave();
  }

  void change(const std::function<void()>& what) {
    const std::lock_guard lock(mutex_);
    what();
    changed_.notify_all();
  }
  bool may_step() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return dying_ || allowed_ > 0 || leaving_; });
    return !dying_ && allowed_-- > 0;
  }

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  int allowed_ = 0;
  bool leaving_ = false;
  std::atomic<bool> dying_ = false;
  std::thread thread_;
};

class SupervisorTest : public ::testing::Test {
 protected:
  // Servers with plain SGD, and timeouts long enough for a busy machine.
  static server::ServerOptions servers(const std::filesystem::path& run) {
    server::ServerOptions options;
    options.job.workers = kWorkers;
    options.job.strategy = "sync";
    options.optimizer.first.lr = kRate;
    options.optimizer.first.momentum = 0;
    options.members.silence = kTestTimeout;
    options.checkpoints = {run, 0, std::chrono::hours(1), 3};
    return options;
  }

  SupervisorTest() { options_ = servers(run_); }
  ~SupervisorTest() override {
    workers_.clear();
    if (result_.valid()) result_.wait();
  }

  void begin(std::uint32_t epochs, bool starts_workers = true, std::uint32_t workers = kWorkers) {
    cluster_.emplace(true, options_);
    auto link = cluster_->link_options();
    link.silence = kTestTimeout;
    auto observer = client::Observer::join(link, cluster_->connector());
    ASSERT_TRUE(observer) << observer.status().message();
    const auto config = job_config(epochs);
    const SupervisedJob job{config,
                            budget_steps(config, kSamples, nullptr),
                            kLayout,
                            {},
                            testing::classification_metrics(),
                            kSamples,
                            {},
                            starts_workers,
                            2};
    supervisor_ = std::make_unique<Supervisor>(
        job, environment_, record_, processes_, std::move(*observer),
        [this](auto weights, auto, const auto& cancel) { return evaluate_(weights, cancel); }, evaluator_);
    result_ = std::async(std::launch::async, [this] { return supervisor_->run(); });
    // By now the weights of the first epoch are requested.
    ASSERT_TRUE(processes_.await_polls(1));
    for (std::uint32_t rank = 0; rank < workers; ++rank)
      workers_.push_back(std::make_unique<Worker>(*cluster_, rank));
  }
  void allow(int steps) {
    for (auto& worker : workers_) worker->allow(steps);
  }

  std::uint64_t newest_checkpoint() const {
    const auto list = checkpoint::list(run_);
    return list.empty() ? 0 : list.back().version.value;
  }
  float saved_weight() const {
    return checkpoint::read_safetensors(run_ / "weights.safetensors").tensors.at(0).values.at(0);
  }
  // Waits until this many updates are made and no more are possible.
  void await_updates(std::size_t evaluations) { ASSERT_TRUE(events_.await_evaluations(evaluations)); }

  const TemporaryFolder folder_;
  const std::filesystem::path run_ = folder_ / "run";
  server::ServerOptions options_;
  RecordedEvents events_;
  FakeStop stop_;
  FakeClock clock_;
  FakeProcesses processes_;
  Environment environment_{events_, stop_, clock_.now()};
  RunRecord record_{metrics::RunFolder(run_, "")};
  EvaluatorProcess evaluator_{false, run_, environment_};
  std::function<std::optional<metrics::Evaluation>(const std::vector<float>&, const std::atomic<bool>&)>
      evaluate_ = [](const std::vector<float>& weights, const auto&) {
        return testing::classified(weights[0], 0.5, 1, 10);
      };
  std::optional<LoopbackCluster> cluster_;
  std::unique_ptr<Supervisor> supervisor_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::future<TrainResult> result_;
};

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
  workers_[1] = std::make_unique<Worker>(*cluster_, 1);
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

TEST(WorkerWatch, ReportsEachLossOfARankOnce) {
  RecordedEvents events;
  WorkerWatch watch(2, true, events);
  wire::StatusReport status;
  status.workers.resize(2);
  const auto update = [&](wire::WorkerState state) {
    status.workers[1].state = state;
    watch.update(status);
  };
  update(wire::WorkerState::kLive);
  watch.process_ended(1, "killed");
  update(wire::WorkerState::kLive);  // the servers do not know it yet
  update(wire::WorkerState::kLost);
  EXPECT_EQ(events.messages().size(), 1u);
  update(wire::WorkerState::kLive);  // another process
  update(wire::WorkerState::kLost);
  update(wire::WorkerState::kLost);
  EXPECT_EQ(events.messages().size(), 2u);
  update(wire::WorkerState::kLive);
  watch.process_ended(1, "the first process");
  EXPECT_EQ(events.messages().size(), 2u) << "that is not the one that the servers know";
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

TEST_F(SupervisorTest, AFailedEvaluationDoesNotEndTheJob) {
  evaluate_ = [](const auto& weights, const auto&) -> std::optional<metrics::Evaluation> {
    if (weights[0] == 1 - 2 * kRate) throw UserError("val/cat/3.jpg cannot be read");
    return testing::classified(weights[0], 0.5, 1, 10);
  };
  begin(2);
  allow(2);
  ASSERT_TRUE(events_.await_message("step 2 could not be evaluated: val/cat/3.jpg cannot be read"));
  allow(2);
  for (auto& worker : workers_) worker->leave();
  const auto result = result_.get();
  EXPECT_EQ(result.reached.steps, 4u);
  EXPECT_EQ(result.test.values.at(1), 1 - 4 * kRate);
  EXPECT_EQ(result.problem, "");
}

TEST_F(SupervisorTest, AFailedLastEvaluationIsReportedAfterTheCheckpoint) {
  evaluate_ = [](const auto&, const auto&) -> std::optional<metrics::Evaluation> {
    throw UserError("val/cat/3.jpg cannot be read");
  };
  begin(1);
  allow(2);
  for (auto& worker : workers_) worker->leave();
  const auto result = result_.get();
  EXPECT_EQ(result.problem, "the last evaluation failed: val/cat/3.jpg cannot be read");
  EXPECT_THAT(result.json(), HasSubstr(R"("test_loss":null)"));
  EXPECT_EQ(saved_weight(), 1 - 2 * kRate);
  EXPECT_EQ(newest_checkpoint(), 2u);
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

}  // namespace
}  // namespace capstan::job
