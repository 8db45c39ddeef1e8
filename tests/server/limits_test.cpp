// When a job ends, and what an observer reports about it.

#include <gtest/gtest.h>

#include "server/play.h"

namespace capstan {
namespace {

using server::Server;
using testing::eventually;
using testing::LoopbackCluster;
using namespace testing::play;

class Limits : public ::testing::TestWithParam<std::pair<const char*, bool>> {
 protected:
  std::string strategy() const { return GetParam().first; }
  bool share_memory() const { return GetParam().second; }
};
INSTANTIATE_TEST_SUITE_P(Jobs, Limits,
                         ::testing::Values(std::pair{"sync", true}, std::pair{"sync", false},
                                           std::pair{"async", true}, std::pair{"async", false},
                                           std::pair{"batch:2", true}, std::pair{"batch:2", false}),
                         [](const auto& param) {
                           std::string name = param.param.first;
                           std::erase(name, ':');
                           return name + (param.param.second ? "_Shared" : "_Copied");
                         });

TEST_P(Limits, AJobEndsAtExactlyItsLastStep) {
  for (std::uint32_t servers : {1u, 2u}) {
    auto options = job(3, servers, strategy());
    options.job.max_steps = 7;
    LoopbackCluster cluster(share_memory(), options);
    const auto histories = run_workers(cluster, 3, 1000);
    EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
    EXPECT_EQ(cluster.report().version.value, 7u);
    const std::uint64_t per_update = strategy() == "sync" ? 3 : strategy() == "async" ? 1 : 2;
    EXPECT_EQ(applied_pushes(histories), 7 * per_update);
    for (const auto& history : histories) EXPECT_TRUE(history.stopped);
    expect_near(cluster.weights(), replay(histories));
  }
}

TEST_P(Limits, AStopEndsTheJobAtTheNextStep) {
  LoopbackCluster cluster(share_memory(), job(2, 2, strategy()));
  auto observer = client::Observer::join(cluster.link_options(), cluster.connector());
  ASSERT_TRUE(observer) << observer.status().message();
  std::thread stopper([&] {
    EXPECT_TRUE(eventually([&] {
      const auto status = (*observer)->status();
      return status && status->version.value >= 3;
    }));
    (*observer)->stop("enough");
  });
  const auto histories = run_workers(cluster, 2, 1'000'000'000);
  stopper.join();
  const auto status = (*observer)->status();
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->finished);
  observer->reset();
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
  EXPECT_GE(cluster.report().version.value, 3u);
  expect_near(cluster.weights(), replay(histories));
}

TEST_P(Limits, AStopBeforeTheFirstStepLeavesTheInitialWeights) {
  LoopbackCluster cluster(share_memory(), job(2, 1, strategy()));
  auto observer = client::Observer::join(cluster.link_options(), cluster.connector());
  ASSERT_TRUE(observer);
  (*observer)->stop("never mind");
  ASSERT_TRUE((*observer)->status());  // so that the stop has arrived
  for (const auto& history : run_workers(cluster, 2, 10)) {
    EXPECT_TRUE(history.stopped);
    EXPECT_TRUE(history.applied.empty());
    EXPECT_EQ(history.weights, initial_weights(small_layout()));
  }
}

TEST_P(Limits, ThePushesOfAStatusAddUp) {
  constexpr std::uint64_t kWindow = 4;
  auto options = job(3, 1, strategy());
  options.job.loss_window = kWindow;
  LoopbackCluster cluster(share_memory(), options);
  const auto histories = run_workers(cluster, 3, 12);
  const auto& report = cluster.report();
  EXPECT_TRUE(report.started);
  EXPECT_TRUE(report.finished);
  std::uint64_t samples = 0, dropped = 0;
  double in_window = 0, weighted_losses = 0;
  for (const auto& history : histories) {
    std::uint64_t all = 0;
    for (std::uint64_t step = 0; step < 12; ++step) {
      const auto pushed = step_report(history.rank, step);
      all += pushed.samples;
      const auto version = history.applied.at(step);
      dropped += version == 0;
      if (version == 0) continue;
      samples += pushed.samples;
      if (version + kWindow <= report.version.value) continue;
      in_window += pushed.samples;
      weighted_losses += static_cast<double>(pushed.loss) * pushed.samples;
    }
    EXPECT_EQ(report.workers[history.rank].steps.value, 12u);
    EXPECT_EQ(report.workers[history.rank].samples, all);
    EXPECT_NEAR(report.workers[history.rank].compute_seconds, 0.012, 1e-6);
  }
  EXPECT_GT(report.version.value, kWindow);
  EXPECT_EQ(report.samples, samples);
  EXPECT_EQ(report.dropped_pushes, dropped);
  EXPECT_NEAR(report.loss, weighted_losses / in_window, 1e-9);
  EXPECT_EQ(report.bytes_pushed, 36 * small_layout().bytes());
  EXPECT_EQ(report.bytes_pulled, (36 + 3) * small_layout().bytes());
  if (strategy() == "sync") {
    EXPECT_EQ(report.staleness_max, 0u);
  }
}

TEST(Observers, GetExactlyTheVersionTheyAskFor) {
  for (std::uint32_t servers : {1u, 2u}) {
    for (bool share_memory : {true, false}) {
      LoopbackCluster cluster(share_memory, job(3, servers, "sync"));
      std::vector<std::unique_ptr<client::Observer>> observers;
      for (std::uint64_t version : {0u, 1u, 7u, 8u, 15u}) {
        auto observer = client::Observer::join(cluster.link_options(), cluster.connector());
        ASSERT_TRUE(observer);
        (*observer)->request_weights(small_layout(), {version});
        observers.push_back(std::move(*observer));
      }
      run_workers(cluster, 3, 15);
      std::size_t i = 0;
      for (std::uint64_t version : {0u, 1u, 7u, 8u, 15u}) {
        const auto snapshot = await_weights(*observers[i]);
        ASSERT_TRUE(snapshot) << version;
        EXPECT_EQ(snapshot->version.value, version);
        expect_near(snapshot->weights, reference(3, version));
        observers[i++].reset();
      }
      EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
    }
  }
}

TEST(Observers, GetTheLastVersionOfAJobThatEndsBefore) {
  LoopbackCluster cluster(false, job(2, 2, "sync"));
  auto observer = client::Observer::join(cluster.link_options(), cluster.connector());
  ASSERT_TRUE(observer);
  (*observer)->request_weights(small_layout(), {1000});
  run_workers(cluster, 2, 5);
  const auto snapshot = await_weights(**observer);
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->version.value, 5u);
  expect_near(snapshot->weights, reference(2, 5));
}

}  // namespace
}  // namespace capstan
