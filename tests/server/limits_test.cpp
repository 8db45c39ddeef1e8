// Where a job ends, and what an observer sees of it.

#include <gtest/gtest.h>

#include "server/play.h"

namespace capstan {
namespace {

using server::Server;
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
    const auto lives = live_all(cluster, 3, 1000);
    EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
    EXPECT_EQ(cluster.report().version.value, 7u);
    const std::uint64_t per_update = strategy() == "sync" ? 3 : strategy() == "async" ? 1 : 2;
    EXPECT_EQ(applied_pushes(lives), 7 * per_update);
    for (const auto& life : lives) EXPECT_TRUE(life.stopped);
    expect_near(cluster.weights(), replay(lives));
  }
}

TEST_P(Limits, AStopEndsTheJobAtTheNextStep) {
  LoopbackCluster cluster(share_memory(), job(2, 2, strategy()));
  auto observer = client::Observer::join(cluster.link_options(), cluster.connector());
  ASSERT_TRUE(observer) << observer.status().message();
  std::thread stopper([&] {
    const auto give_up = SteadyClock::now() + std::chrono::seconds(30);
    for (;;) {
      const auto status = (*observer)->status();
      ASSERT_TRUE(status) << status.status().message();
      if (status->version.value >= 3 || SteadyClock::now() > give_up) break;
    }
    (*observer)->stop("enough");
  });
  const auto lives = live_all(cluster, 2, 1'000'000'000);
  stopper.join();
  const auto status = (*observer)->status();
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->finished);
  observer->reset();
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
  EXPECT_GE(cluster.report().version.value, 3u);
  expect_near(cluster.weights(), replay(lives));
}

TEST_P(Limits, AStopBeforeTheFirstStepLeavesTheInitialWeights) {
  LoopbackCluster cluster(share_memory(), job(2, 1, strategy()));
  auto observer = client::Observer::join(cluster.link_options(), cluster.connector());
  ASSERT_TRUE(observer);
  (*observer)->stop("never mind");
  ASSERT_TRUE((*observer)->status());  // so that the stop has arrived
  for (const auto& life : live_all(cluster, 2, 10)) {
    EXPECT_TRUE(life.stopped);
    EXPECT_TRUE(life.applied.empty());
    EXPECT_EQ(life.weights, initial_weights(small_layout()));
  }
}

TEST_P(Limits, ThePushesOfAStatusAddUp) {
  LoopbackCluster cluster(share_memory(), job(3, 1, strategy()));
  live_all(cluster, 3, 12);
  const auto& report = cluster.report();
  EXPECT_TRUE(report.started);
  EXPECT_TRUE(report.finished);
  EXPECT_EQ(report.samples + report.dropped_pushes * 32, 36u * 32);
  EXPECT_DOUBLE_EQ(report.loss, 1);  // every loss is
  EXPECT_EQ(report.bytes_pushed, 36 * small_layout().bytes());
  EXPECT_EQ(report.bytes_pulled, (36 + 3) * small_layout().bytes());
  if (strategy() == "sync") {
    EXPECT_EQ(report.staleness_max, 0u);
  }
  for (const auto& row : report.workers) {
    EXPECT_EQ(row.steps.value, 12u);
    EXPECT_EQ(row.samples, 12u * 32);
    EXPECT_NEAR(row.compute_seconds, 0.012, 1e-6);
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
      live_all(cluster, 3, 15);
      std::size_t i = 0;
      for (std::uint64_t version : {0u, 1u, 7u, 8u, 15u}) {
        std::optional<client::Observer::Snapshot> snapshot;
        const auto give_up = SteadyClock::now() + std::chrono::seconds(30);
        while (!snapshot && SteadyClock::now() < give_up) {
          ASSERT_TRUE(observers[i]->poll(SteadyClock::now() + std::chrono::milliseconds(10)));
          snapshot = observers[i]->take_weights();
        }
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
  live_all(cluster, 2, 5);
  auto snapshot = (*observer)->take_weights();
  const auto give_up = SteadyClock::now() + std::chrono::seconds(30);
  while (!snapshot && SteadyClock::now() < give_up) {
    ASSERT_TRUE((*observer)->poll(SteadyClock::now() + std::chrono::milliseconds(10)));
    snapshot = (*observer)->take_weights();
  }
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->version.value, 5u);
  expect_near(snapshot->weights, reference(2, 5));
}

}  // namespace
}  // namespace capstan
