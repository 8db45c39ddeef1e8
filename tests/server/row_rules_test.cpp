// Row tensors through real servers: what is pushed, updated and answered.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/checkpoint/checkpoint.h"
#include "capstan/checkpoint/run_checkpoints.h"

#include "server/row_play.h"
#include "support/temporary_folder.h"

namespace capstan {
namespace {

using testing::LoopbackCluster;
using transport::faulty::Faults;
using namespace testing::row_play;

constexpr std::uint64_t kSteps = 9;

// With one server, and with three that cut rows; with and without shared memory.
class RowRules : public ::testing::TestWithParam<std::tuple<std::string, std::uint32_t, bool>> {};

TEST_P(RowRules, EqualPlainArithmetic) {
  const auto& [strategy, servers, shares] = GetParam();
  LoopbackCluster cluster(shares, job(3, servers, strategy));
  const auto histories = run_workers(cluster, 3, kSteps);
  expect_finished(cluster, replay(histories));
}

INSTANTIATE_TEST_SUITE_P(Strategies, RowRules,
                         ::testing::Combine(::testing::Values("sync", "async", "batch:2", "ssp:1", "backup:1",
                                                              "sync;3=async"),
                                            ::testing::Values(1u, 3u), ::testing::Bool()));

TEST(RowRules, WithSyncGiveTheSameBitsWithAnyNumberOfServers) {
  std::vector<std::vector<float>> results;
  for (const std::uint32_t servers : {1u, 2u, 3u, 6u}) {
    LoopbackCluster cluster(servers % 2 == 0, job(2, servers, "sync"));
    const auto histories = run_workers(cluster, 2, kSteps);
    EXPECT_EQ(cluster.outcome(), server::Server::Outcome::kFinished);
    results.push_back(histories[0].seen.back());
    EXPECT_EQ(histories[1].seen.back(), results.back());
    EXPECT_EQ(results.back(), results.front()) << servers;
  }
}

// Rows have one strategy, the other tensors another one that corrects a gradient by the weights that the
// worker was given. One worker pushes alone, so these are the current ones, and nothing is corrected.
TEST(RowRules, LeaveTheCopyForDelayCompensationWhole) {
  for (const bool shares : {false, true}) {
    LoopbackCluster cluster(shares, job(2, 1, "default=dc-asgd:1000,emb=async,bag=async"));
    auto one = std::async(std::launch::async, [&] {
      auto client = join(cluster, 0);
      EXPECT_TRUE(client->pull());
      return client;
    });
    auto other = join(cluster, 1);
    ASSERT_TRUE(other->pull());
    auto client = one.get();
    Arithmetic a;
    for (std::uint64_t step = 0; step < 4; ++step) {
      ASSERT_TRUE(push(*client, 0, step));
      a.update({{0, step}});
      expect_near(client->weights(), a.w);
    }
    client->leave();
    other->leave();
    expect_finished(cluster, a);
  }
}

// A row that is cut is counted with its number on both servers.
std::uint64_t row_bytes(const std::vector<std::uint32_t>& rows, std::size_t tensor, std::uint32_t servers) {
  std::uint64_t bytes = 0;
  for (const auto row : rows) {
    const auto elements = elements_of({row}, tensor);
    const auto of = [&](std::uint64_t element) { return servers == 1 ? 0 : element / (2 * kPage); };
    bytes += 4 * elements.size() + (of(*elements.begin()) == of(*elements.rbegin()) ? 4 : 8);
  }
  return bytes;
}

TEST(RowTraffic, IsCountedAsSent) {
  constexpr std::uint64_t kDense = 4 * (64 * 30 + 5), kAllRows = 4 * (300 * 7 + 90 * 13);
  for (const std::uint32_t servers : {1u, 3u}) {
    for (const bool shares : {false, true}) {
      SCOPED_TRACE(fmt::format("{} servers, shared memory: {}", servers, shares));
      LoopbackCluster cluster(shares, job(2, servers, "sync"));
      std::uint64_t pushed = 0, pulled = 2 * (kDense + kAllRows);
      for (std::uint64_t step = 0; step < kSteps; ++step) {
        for (const std::size_t t : {0, 2}) {
          std::set<std::uint32_t> all;
          for (const std::uint32_t rank : {0u, 1u}) {
            const auto rows = rows_of(rank, step, t);
            pushed += row_bytes(rows, t, servers);
            all.insert(rows.begin(), rows.end());
          }
          pulled += 2 * row_bytes({all.begin(), all.end()}, t, servers);
        }
      }
      const auto histories = run_workers(cluster, 2, kSteps);
      ASSERT_EQ(cluster.outcome(), server::Server::Outcome::kFinished);
      EXPECT_EQ(cluster.report().bytes_pushed, pushed + 2 * kSteps * kDense);
      EXPECT_EQ(cluster.report().bytes_pulled, pulled + 2 * kSteps * kDense);
      const auto &first = histories[0].traffic, &second = histories[1].traffic;
      EXPECT_EQ(first.pushed + second.pushed, pushed + 2 * kSteps * kDense);
      EXPECT_EQ(first.pulled + second.pulled, pulled + 2 * kSteps * kDense);
    }
  }
}

// The job's second half continues with the moments and the number of updates of the first.
TEST(RowResume, ContinuesAsIfTheJobHadNotStopped) {
  const testing::TemporaryFolder run;
  Arithmetic a;
  for (const std::uint64_t first : {0, 4}) {
    auto options = job(1, 1, "async");
    options.checkpoints = {run.path(), 1'000'000, {}, 100};
    const auto folder = checkpoint::folder_of(run.path(), {4});
    if (first > 0) options.resume = checkpoint::Found{folder, checkpoint::read_manifest(folder)};
    LoopbackCluster cluster(first > 0, options);
    const auto client = join(cluster, 0);
    ASSERT_TRUE(client->pull());
    for (auto step = first; step < first + 4; ++step) {
      ASSERT_TRUE(push(*client, 0, step));
      a.update({{0, step}});
      expect_near(client->weights(), a.w);
    }
    client->leave();
    expect_finished(cluster, a);
  }
  const auto end = checkpoint::read_manifest(checkpoint::folder_of(run.path(), {8}));
  EXPECT_EQ(end.groups, (std::vector<checkpoint::GroupVersion>{{"optimizer default", {8}},
                                                               {"optimizer emb, rows of emb", {8}},
                                                               {"optimizer bag, rows of bag", {8}}}));
  EXPECT_EQ(end.parameters, four_tensors().tensors());
}

// ---- unreliable networks ----

using Count = std::shared_ptr<std::atomic<std::uint64_t>>;

// The first connection to a server is cut after so many messages.
client::Connector cut_connector(LoopbackCluster& cluster, const std::string& where, std::uint64_t after) {
  return [&cluster, where, after, was_cut = Count()](
             transport::EventLoop& loop,
             const std::string& address) mutable -> Result<std::unique_ptr<transport::Connection>> {
    auto inner = cluster.network().connect(loop, address);
    if (!inner || address != where || (was_cut && *was_cut > 0)) return inner;
    if (!was_cut) was_cut = std::make_shared<std::atomic<std::uint64_t>>(0);
    Faults faults;
    faults.cut_after = after;
    faults.count = was_cut;
    return transport::faulty::wrap(loop, std::move(*inner), faults);
  };
}

TEST(RowReconnect, EveryPushCountsOnceAndEveryAnswerIsWholeWhereverItWasCut) {
  for (const auto* strategy : {"sync", "async"}) {
    for (const auto* where : {"0", "1"}) {
      for (std::uint64_t cut = 2; cut <= 11; ++cut) {
        SCOPED_TRACE(fmt::format("{}, server {} after {}", strategy, where, cut));
        LoopbackCluster cluster(false, job(2, 3, strategy));
        const auto histories = run_workers(cluster, 2, kSteps, [&](std::uint32_t rank) {
          return rank == 0 ? cut_connector(cluster, where, cut) : client::Connector();
        });
        std::uint64_t applied = 0;
        for (const auto& history : histories)
          for (const auto version : history.applied) applied += version > 0;
        EXPECT_EQ(applied, 2 * kSteps);
        expect_finished(cluster, replay(histories));
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

// Answers are lost on the way to the workers, too.
TEST(RowReconnect, AnswersThatAreLostAreRepeatedWhole) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    Faults faults;
    faults.seed = seed;
    faults.cut_after = 6 + seed;
    LoopbackCluster cluster(false, job(2, 2, seed % 2 == 0 ? "sync" : "async"), faults);
    const auto histories = run_workers(cluster, 2, 4);
    expect_finished(cluster, replay(histories));
  }
}

TEST(RowLoss, TheOthersContinueWithTheirRows) {
  for (const bool shares : {false, true}) {
    auto options = job(2, 3, "sync");
    options.members.reconnect = std::chrono::milliseconds(1);
    LoopbackCluster cluster(shares, options);
    auto lost = std::async(std::launch::async, [&] { return run_worker(cluster, 1, 3, {}, End::kIsKilled); });
    auto history = run_worker(cluster, 0, kSteps);
    expect_finished(cluster, replay({history, lost.get()}));
  }
}

}  // namespace
}  // namespace capstan
