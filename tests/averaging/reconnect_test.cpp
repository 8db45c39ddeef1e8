// Connections that break: every bucket counts once, and the averages stay right.

#include <gtest/gtest.h>

#include "averaging/play.h"
#include "server/raw_peer.h"

namespace capstan {
namespace {

using averaging::Shape;
using testing::averaging_job;
using testing::AveragingCluster;
using testing::Play;
using testing::RawPeer;

TEST(Reconnecting, ChangesNoAverage) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const auto rule = seed % 2 == 0 ? testing::on_arrival() : testing::in_rank_order();
    const Play play{seed, 3, 8, {{3000, 0}, {120, 4}, {5, 0}}};
    AveragingCluster cluster(false, averaging_job(3, 2), rule);
    const auto received = testing::train_all(
        cluster, play, [&](std::uint32_t) { return cluster.breaking_connector(3 + seed); });
    testing::expect_averages(received, play);
  }
}

// Messages of servers that get lost, arrive twice or late: channels detect it, and clients reconnect.
TEST(Reconnecting, SurvivesABadNetwork) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Play play{seed, 2, 8, {{700, 0}, {60, 4}}};
    AveragingCluster cluster(false, averaging_job(2), testing::on_arrival());
    const auto received = testing::train_all(cluster, play, [&](std::uint32_t rank) -> client::Connector {
      return [&cluster, seed, rank, n = std::uint64_t{0}](
                 transport::EventLoop& loop,
                 const std::string& address) mutable -> Result<std::unique_ptr<transport::Connection>> {
        auto inner = cluster.network().connect(loop, address);
        if (!inner) return inner;
        transport::faulty::Faults faults;
        faults.seed = derive_seed({seed, rank, n++});
        faults.duplicate = faults.reorder = faults.delay = 0.05;
        faults.drop = n < 6 ? 0.05 : 0;
        return transport::faulty::wrap(loop, std::move(*inner), faults);
      };
    });
    testing::expect_averages(received, play);
  }
}

wire::Join trainer_join(std::uint32_t rank, std::uint64_t incarnation, std::vector<Shape> buckets) {
  wire::Join join;
  join.index = rank;
  join.incarnation = {incarnation};
  join.buckets = std::move(buckets);
  return join;
}

// A repeated bucket has other values, which must not count.
TEST(Repeating, IsAnsweredWithTheSameAverage) {
  AveragingCluster cluster(false, averaging_job(2), testing::on_arrival());
  const std::vector<Shape> buckets{{4, 0}};
  auto peer = std::make_unique<RawPeer>(cluster.network(), "0");
  ASSERT_TRUE(peer->join(cluster.token(), trainer_join(1, 7, buckets)));
  const wire::Bucket bucket{{1}, {7}, 0, 0, 0, 0};
  peer->send(bucket, {1, 2, 3, 4});
  peer->send(bucket, {100, 100, 100, 100});

  const auto client = cluster.join(0, buckets);
  client->next_batch();
  std::ranges::fill(client->bucket(0), 3.0f);
  client->send(0);
  const auto average = client->wait(0);
  ASSERT_TRUE(average);
  EXPECT_EQ(testing::rows_of(*average, 0), (testing::Rows{{0, {2, 2.5f, 3, 3.5f}}}));
  EXPECT_TRUE(peer->next<wire::Average>());

  // The same process reconnects, and repeats the bucket that was answered.
  peer = std::make_unique<RawPeer>(cluster.network(), "0");
  ASSERT_TRUE(peer->join(cluster.token(), trainer_join(1, 7, buckets)));
  peer->send(bucket, {100, 100, 100, 100});
  const auto again = peer->next<wire::Average>();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->batch, 0u);
  EXPECT_EQ(testing::rows_of(client->average(0), 0), (testing::Rows{{0, {2, 2.5f, 3, 3.5f}}}));

  // One of an older batch is ignored.
  client->next_batch();
  client->send(0);
  peer->send(wire::Bucket{{1}, {7}, 1, 0, 0, 0}, {3, 3, 3, 3});
  EXPECT_EQ(peer->next<wire::Average>()->batch, 1u);
  peer->send(bucket, {100, 100, 100, 100});
  ASSERT_TRUE(client->wait_all());
  client->next_batch();
  client->send(0);
  peer->send(wire::Bucket{{1}, {7}, 2, 0, 0, 0}, {5, 5, 5, 5});
  EXPECT_EQ(peer->next<wire::Average>()->batch, 2u);
  ASSERT_TRUE(client->wait_all());
  EXPECT_EQ(client->average(0).values[0], 4);
}

TEST(Resetting, AllowsEveryBatchAgain) {
  AveragingCluster cluster(false, averaging_job(1), testing::on_arrival());
  RawPeer peer(cluster.network(), "0");
  ASSERT_TRUE(peer.join(cluster.token(), trainer_join(0, 7, {{4, 0}})));
  for (int run = 0; run < 2; ++run) {
    for (const std::uint64_t batch : {3, 5}) {
      peer.send(wire::Bucket{{0}, {7}, batch, 0, 0, 0}, {1, 2, 3, 4});
      const auto average = peer.next<wire::Average>();
      ASSERT_TRUE(average);
      EXPECT_EQ(average->batch, batch);
    }
    cluster.on_server(0, [](auto& s) { return s.reset_state(), true; });
  }
}

}  // namespace
}  // namespace capstan
