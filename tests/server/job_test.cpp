// Whole jobs as threads of the test: the server's answers against plain arithmetic.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/play.h"

namespace capstan {
namespace {

using testing::LoopbackCluster;
using namespace testing::play;

class Job : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Memory, Job, ::testing::Values(true, false),
                         [](const auto& param) { return param.param ? "Shared" : "Copied"; });

TEST_P(Job, SyncEqualsPlainArithmetic) {
  LoopbackCluster cluster(GetParam(), job(3, 1, "sync"));
  const auto seen = run(cluster, 3, 20);
  for (const auto& weights : seen) expect_near(weights, reference(3, 20));
  EXPECT_EQ(cluster.outcome(), server::Server::Outcome::kFinished);
}

TEST_P(Job, BatchOfAllWorkersEqualsSync) {
  LoopbackCluster sync_cluster(GetParam(), job(3, 1, "sync"));
  LoopbackCluster batch_cluster(GetParam(), job(3, 1, "batch:3"));
  EXPECT_EQ(run(sync_cluster, 3, 10), run(batch_cluster, 3, 10));
}

TEST_P(Job, AsyncWithOneWorkerEqualsPlainArithmetic) {
  LoopbackCluster cluster(GetParam(), job(1, 1, "async"));
  expect_near(run(cluster, 1, 20)[0], reference(1, 20));
}

TEST_P(Job, ThreeServersGiveTheSameBitsAsOne) {
  LoopbackCluster one(GetParam(), job(2, 1, "sync"));
  LoopbackCluster three(GetParam(), job(2, 3, "sync"));
  EXPECT_EQ(run(one, 2, 15), run(three, 2, 15));
}

TEST_P(Job, TheSameJobTwiceGivesTheSameBits) {
  LoopbackCluster a(GetParam(), job(4, 1, "sync"));
  LoopbackCluster b(GetParam(), job(4, 1, "sync"));
  EXPECT_EQ(run(a, 4, 15), run(b, 4, 15));
}

TEST_P(Job, DampedAsyncEqualsPlainArithmetic) {
  for (const std::uint32_t servers : {1u, 2u}) {
    LoopbackCluster cluster(GetParam(), job(3, servers, "async:damped"));
    const auto histories = run_workers(cluster, 3, 20);
    EXPECT_EQ(cluster.outcome(), server::Server::Outcome::kFinished);
    EXPECT_GT(cluster.report().staleness_max, 0u);
    expect_near(cluster.weights(), replay(histories, true));
  }
}

// Without momentum the order of updates does not matter, so the sum of all gradients is the reference.
TEST_P(Job, AsyncAppliesEveryPushExactlyOnce) {
  for (std::uint32_t servers : {1u, 2u}) {
    auto options = job(3, servers, "async");
    options.optimizer.first.momentum = 0;
    LoopbackCluster cluster(GetParam(), options);
    auto observer = client::Observer::join(cluster.link_options(), cluster.connector());
    ASSERT_TRUE(observer);
    (*observer)->request_weights(small_layout(), {3 * 25});
    run(cluster, 3, 25);
    const auto snapshot = await_weights(**observer);
    ASSERT_TRUE(snapshot);
    EXPECT_EQ(snapshot->version.value, 75u);
    const auto w0 = initial_weights(small_layout());
    std::vector<double> expected(w0.begin(), w0.end());
    for (std::uint64_t step = 0; step < 25; ++step) {
      for (std::uint32_t r = 0; r < 3; ++r) {
        for (std::size_t i = 0; i < expected.size(); ++i) expected[i] -= 0.1 * gradient(r, step, i);
      }
    }
    expect_near(snapshot->weights, expected);
  }
}

// Numbers too small to be normal are zero in every pass, whether it runs on the pool or on the loop's own
// thread, so that bits do not depend on the number of servers.
TEST(Bits, OfDenormalGradientsAreZero) {
  const FlatLayout layout({{"a", {100'000}}});
  std::vector<std::vector<float>> seen;
  for (const auto& [servers, inline_elements] : {std::pair(1u, 0u), std::pair(8u, 1'000'000u)}) {
    auto options = job(1, servers, "sync");
    options.optimizer.first.lr = 1;
    options.inline_elements = inline_elements;
    LoopbackCluster cluster(true, options);
    auto client = client::WorkerClient::join(cluster.worker_options(0), cluster.connector(), layout,
                                             std::vector<float>(layout.size(), 0.0f));
    ASSERT_TRUE(client) << client.status().message();
    ASSERT_TRUE((*client)->pull());
    for (int step = 0; step < 3; ++step) {
      for (std::size_t i = 0; i < layout.size(); ++i) {
        (*client)->gradients()[i] = 1e-39f * static_cast<float>(i % 50);
      }
      ASSERT_TRUE((*client)->push_pull({1, 0, 0}));
    }
    seen.emplace_back((*client)->weights().begin(), (*client)->weights().end());
    (*client)->leave();
    // 11e-39 is less than the smallest normal number, 11.75e-39; 30e-39 and 0.9 of it are more.
    for (std::size_t i = 0; i < layout.size(); ++i) {
      const auto n = static_cast<double>(i % 50);
      if (n <= 11) {
        ASSERT_EQ(seen.back()[i], 0) << i;
      } else if (n >= 30) {
        ASSERT_NEAR(seen.back()[i], -n * 1e-39 * (1 + 1.9 + 2.71), 1e-42) << i;
      }
    }
  }
  EXPECT_EQ(seen[0], seen[1]);
}

}  // namespace
}  // namespace capstan
