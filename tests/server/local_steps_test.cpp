// Workers with many local steps: their progress reports, and when they are notified that the job stops.

#include <gtest/gtest.h>

#include "support/loopback_cluster.h"

namespace capstan {
namespace {

using testing::eventually;
using testing::LoopbackCluster;

class LocalSteps : public ::testing::Test {
 protected:
  void begin(const std::string& strategy) {
    server::ServerOptions options;
    options.job.strategy = strategy;
    cluster_ = std::make_unique<LoopbackCluster>(true, options);
    const std::vector<float> initial(layout_.size());
    auto client =
        client::WorkerClient::join(cluster_->worker_options(0), cluster_->connector(), layout_, initial);
    ASSERT_TRUE(client) << client.status().message();
    worker_ = std::move(*client);
    ASSERT_TRUE(worker_->pull());
    auto observer = client::Observer::join(cluster_->link_options(), cluster_->connector());
    ASSERT_TRUE(observer) << observer.status().message();
    observer_ = std::move(*observer);
  }
  wire::WorkerRow row() {
    const auto status = observer_->status();
    EXPECT_TRUE(status) << status.status().message();
    return status ? status->workers.at(0) : wire::WorkerRow{};
  }

  const FlatLayout layout_ = FlatLayout({{"w", {10}}});
  std::unique_ptr<LoopbackCluster> cluster_;
  std::unique_ptr<client::WorkerClient> worker_;
  std::unique_ptr<client::Observer> observer_;
};

TEST_F(LocalSteps, ShowHowFarTheyAre) {
  begin("local-sgd:100");
  worker_->report_progress({.samples = 320, .loss = 1.5f, .steps = 10});
  EXPECT_TRUE(eventually([&] { return row().steps == StepCount{10}; }));
  EXPECT_EQ(row().samples, 320u);
  EXPECT_EQ(row().loss, 1.5f);
  EXPECT_EQ(row().pushes, 0u);
  ASSERT_TRUE(worker_->push_pull({.samples = 3200, .loss = 1, .steps = 100}));
  EXPECT_EQ(row().steps, StepCount{100});
  EXPECT_EQ(row().samples, 3200u) << "what was reported before is part of the push";
  worker_->report_progress({.samples = 32, .loss = 0.5f, .steps = 1});
  EXPECT_TRUE(eventually([&] { return row().steps == StepCount{101}; }));
  EXPECT_EQ(row().samples, 3232u);
  worker_->leave();
  EXPECT_TRUE(eventually([&] { return row().state == wire::WorkerState::kLeft; }));
  EXPECT_EQ(row().samples, 3200u) << "what was never pushed does not count";
}

TEST_F(LocalSteps, EndWhenTheJobIsStopped) {
  begin("diloco:1000");
  EXPECT_FALSE(worker_->asked_to_stop());
  observer_->stop("interrupted");
  EXPECT_TRUE(eventually([&] { return worker_->asked_to_stop(); }));
}

// A worker that pushes gradients gets the stop with the answer to its next push.
TEST_F(LocalSteps, AreNotThoseOfGradients) {
  begin("sync");
  observer_->stop("interrupted");
  ASSERT_TRUE(observer_->status());  // so that the stop has arrived
  const auto update = worker_->push_pull({.samples = 32});
  ASSERT_TRUE(update);
  EXPECT_TRUE(update->stop);
  EXPECT_FALSE(worker_->asked_to_stop());
}

}  // namespace
}  // namespace capstan
