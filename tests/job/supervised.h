#pragma once

#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/checkpoint/safetensors.h"
#include "capstan/job/supervisor.h"

#include "job/fakes.h"
#include "support/evaluations.h"
#include "support/loopback_cluster.h"
#include "support/temporary_folder.h"

namespace capstan::job {

using testing::LoopbackCluster;
using testing::TemporaryFolder;

// A worker that computes a step when the test lets it; every weight is 1 at first, and every gradient.
class SteppingWorker {
 public:
  SteppingWorker(LoopbackCluster& cluster, std::uint32_t rank)
      : thread_([this, &cluster, rank] { run(cluster, rank); }) {}
  ~SteppingWorker() { die(); }

  static FlatLayout layout() { return FlatLayout({{"weight", {4}}}); }

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
    const std::vector<float> initial(layout().size(), 1.0f);
    auto client = client::WorkerClient::join(options, cluster.connector(), layout(), initial);
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

// A supervisor with servers and workers as threads of the test, a fake clock and fake processes.
class SupervisorTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kWorkers = 2;
  static constexpr std::uint64_t kSamples = 16;
  static constexpr float kRate = 0.125f;

  // Two workers, batches of 4: two updates per epoch.
  static config::JobConfig job_config(std::uint32_t epochs) {
    config::JobConfig config;
    config.workers = kWorkers;
    config.batch_size = 4;
    config.epochs = epochs;
    return config;
  }

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
                            SteppingWorker::layout(),
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
      workers_.push_back(std::make_unique<SteppingWorker>(*cluster_, rank));
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
  std::vector<std::unique_ptr<SteppingWorker>> workers_;
  std::future<TrainResult> result_;
};

}  // namespace capstan::job
