// Workers and servers that disappear: the others continue, and none hangs.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/play.h"

namespace capstan {
namespace {

using server::Server;
using testing::eventually;
using testing::LoopbackCluster;
using namespace testing::play;
using wire::WorkerState;

struct Case {
  const char* strategy;
  std::uint32_t servers;
  bool share_memory;
};

class Loss : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Jobs, Loss,
                         ::testing::Values(Case{"sync", 1, true}, Case{"sync", 1, false},
                                           Case{"sync", 2, true}, Case{"sync", 2, false},
                                           Case{"async", 1, true}, Case{"async", 1, false},
                                           Case{"async", 2, true}, Case{"async", 2, false},
                                           Case{"batch:2", 1, true}, Case{"batch:2", 1, false},
                                           Case{"batch:2", 2, true}, Case{"batch:2", 2, false}),
                         [](const auto& param) {
                           std::string name = param.param.strategy;
                           std::erase(name, ':');
                           return fmt::format("{}_{}_{}", name, param.param.servers,
                                              param.param.share_memory ? "Shared" : "Copied");
                         });

server::ServerOptions impatient(const Case& c, std::uint32_t workers) {
  auto options = job(workers, c.servers, c.strategy);
  options.members.reconnect = std::chrono::milliseconds(200);
  return options;
}

TEST_P(Loss, OfOneWorkerLetsTheOthersFinish) {
  LoopbackCluster cluster(GetParam().share_memory, impatient(GetParam(), 3));
  std::vector<WorkerHistory> histories(3);
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] {
      histories[r] = run_worker(cluster, cluster.connector(), r, r == 2 ? 4 : 12,
                                r == 2 ? End::kIsKilled : End::kLeaves);
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
  for (const auto& history : histories) EXPECT_TRUE(history.failure) << history.failure.message();
  EXPECT_EQ(applied_pushes(histories), 12u + 12 + 4);
  expect_near(cluster.weights(), replay(histories));
  const auto& rows = cluster.report().workers;
  EXPECT_EQ(rows[0].state, WorkerState::kLeft);
  EXPECT_EQ(rows[1].state, WorkerState::kLeft);
  EXPECT_EQ(rows[2].state, WorkerState::kLost);
  for (std::size_t s = 1; s < GetParam().servers; ++s)
    EXPECT_EQ(cluster.outcome(s), Server::Outcome::kFinished);
}

TEST_P(Loss, OfAllWorkersEndsTheJob) {
  LoopbackCluster cluster(GetParam().share_memory, impatient(GetParam(), 3));
  std::vector<WorkerHistory> histories(3);
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < 3; ++r) {
    threads.emplace_back(
        [&, r] { histories[r] = run_worker(cluster, cluster.connector(), r, 3, End::kIsKilled); });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kAllWorkersLost);
  expect_near(cluster.weights(), replay(histories));
}

TEST_P(Loss, OfAServerEndsTheWorkersWithAReason) {
  for (std::size_t killed = 0; killed < GetParam().servers; ++killed) {
    LoopbackCluster cluster(GetParam().share_memory, impatient(GetParam(), 3));
    auto observer = client::Observer::join(cluster.link_options(), cluster.connector());
    ASSERT_TRUE(observer) << observer.status().message();
    std::vector<WorkerHistory> histories(3);
    std::vector<std::thread> threads;
    for (std::uint32_t r = 0; r < 3; ++r) {
      threads.emplace_back([&, r] {
        histories[r] = run_worker(cluster, cluster.connector(), r, 1'000'000'000, End::kLeaves,
                                  std::chrono::milliseconds(100));
      });
    }
    const bool trains = eventually([&] {
      const auto status = (*observer)->status();
      return status && std::ranges::all_of(status->workers, [](const auto& row) { return row.pushes >= 3; });
    });
    observer->reset();
    cluster.kill(killed);
    for (auto& t : threads) t.join();
    EXPECT_TRUE(trains);
    // The others end with it, so with two servers a worker may miss either first.
    const auto reason = GetParam().servers == 1 ? "lost the server at 0: " : "lost the server at ";
    for (const auto& history : histories) {
      EXPECT_GE(history.applied.size(), 2u);
      EXPECT_THAT(history.failure.message(), ::testing::StartsWith(reason));
    }
    if (killed > 0) {  // whichever the leader detects first: the lost follower, or the workers that gave up
      EXPECT_THAT(cluster.outcome(),
                  ::testing::AnyOf(Server::Outcome::kFollowerLost, Server::Outcome::kAllWorkersLost));
    } else if (GetParam().servers > 1) {
      EXPECT_EQ(cluster.outcome(1), Server::Outcome::kLeaderLost);
    }
  }
}

// A worker takes the rank of a lost one and gets the current weights.
TEST_P(Loss, LeavesAPlaceForALateWorker) {
  LoopbackCluster cluster(GetParam().share_memory, impatient(GetParam(), 2));
  auto observer = client::Observer::join(cluster.link_options(), cluster.connector());
  ASSERT_TRUE(observer) << observer.status().message();
  WorkerHistory stays, dies, late;
  std::atomic<bool> is_noticed = false, finish = false;
  std::thread first([&] {
    const auto layout = small_layout();
    auto client = client::WorkerClient::join(cluster.worker_options(0), cluster.connector(), layout,
                                             initial_weights(layout));
    ASSERT_TRUE(client);
    auto update = (*client)->pull();
    for (std::uint64_t step = 0; update && !finish; ++step) {
      for (std::size_t i = 0; i < layout.size(); ++i) (*client)->gradients()[i] = gradient(0, step, i);
      update = (*client)->push_pull(step_report(0, step));
      if (update) stays.applied.push_back(update->applied.value);
      if (step == 5) is_noticed.wait(false);
      if (step > 5) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // many steps round a lot
    }
    EXPECT_TRUE(update) << update.status().message();
    (*client)->leave();
  });
  dies = run_worker(cluster, cluster.connector(), 1, 3, End::kIsKilled);
  EXPECT_TRUE(eventually([&] {
    const auto status = (*observer)->status();
    return status && status->workers[1].state == WorkerState::kLost;
  }));
  is_noticed = true;
  is_noticed.notify_all();
  late = run_worker(cluster, cluster.connector(), 1, 5);
  EXPECT_TRUE(late.failure) << late.failure.message();
  finish = true;
  first.join();
  observer->reset();
  EXPECT_EQ(late.applied.size(), 5u);
  EXPECT_GE(late.first_version, 3u);
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
  expect_near(cluster.weights(), replay({stays, dies, late}));
  if (std::string(GetParam().strategy) == "async") {
    EXPECT_EQ(applied_pushes({stays, dies, late}), cluster.report().version.value);
  }
}

}  // namespace
}  // namespace capstan
