// Trainers that are lost, leave too early, do not match, or come too late: the run ends with the reason.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "averaging/play.h"

namespace capstan {
namespace {

using averaging::AveragingClient;
using averaging::Shape;
using testing::averaging_job;
using testing::AveragingCluster;
using ::testing::HasSubstr;

const std::vector<Shape> kBuckets{{2000, 0}, {40, 4}};

TEST(LosingATrainer, EndsTheRunForAllWithItsRank) {
  for (const bool shared : {true, false}) {
    auto options = averaging_job(3, 2);
    options.members.reconnect = std::chrono::milliseconds(50);
    AveragingCluster cluster(shared, options, testing::on_arrival());
    const auto a = cluster.join(0, kBuckets);
    auto b = cluster.join(1, kBuckets);
    const auto c = cluster.join(2, kBuckets);
    for (auto* client : {a.get(), c.get()}) {
      client->next_batch();
      client->send(0);
      client->send(1, 0);
    }
    b.reset();  // without leave(), as if its process had died
    for (auto* client : {a.get(), c.get()}) {
      EXPECT_THAT(client->wait_all().message(), HasSubstr("trainer 1 is lost"));
      EXPECT_FALSE(client->wait(0));
    }
    EXPECT_THAT(cluster.failure(0), HasSubstr("trainer 1 is lost"));
    EXPECT_TRUE(testing::eventually([&] { return !cluster.failure(1).empty(); }));
    const auto late = AveragingClient::join(cluster.client_options(1, kBuckets), cluster.connector());
    EXPECT_THAT(late.status().message(), HasSubstr("trainer 1 is lost"));
  }
}

TEST(LosingAServer, EndsTheWait) {
  auto cluster = std::make_unique<AveragingCluster>(true, averaging_job(2), testing::on_arrival());
  const auto client = cluster->join(0, kBuckets);
  client->next_batch();
  client->send(0);
  std::thread end([&] { cluster.reset(); });
  EXPECT_THAT(client->wait(0).status().message(), HasSubstr("lost the server at 0"));
  end.join();
}

TEST(Leaving, BeforeABatchIsAveragedEndsTheRun) {
  AveragingCluster cluster(true, averaging_job(2), testing::on_arrival());
  const auto a = cluster.join(0, kBuckets);
  const auto b = cluster.join(1, kBuckets);
  a->next_batch();
  a->send(0);
  EXPECT_TRUE(testing::eventually([&] {
    b->leave();
    return true;
  }));
  EXPECT_THAT(a->wait(0).status().message(), HasSubstr("trainer"));
  EXPECT_THAT(cluster.failure(), HasSubstr("left"));
}

TEST(Joining, WithOtherBucketsIsRefusedByName) {
  AveragingCluster cluster(true, averaging_job(3), testing::on_arrival());
  const auto first = cluster.join(0, kBuckets);
  const auto joined = [&](std::uint32_t rank, std::vector<Shape> buckets) {
    auto client =
        AveragingClient::join(cluster.client_options(rank, std::move(buckets)), cluster.connector());
    return client ? std::string() : client.status().message();
  };
  EXPECT_THAT(joined(1, {{2000, 0}, {40, 8}}),
              HasSubstr("bucket 1 has 10 rows of 4 on the other trainers, 5 rows of 8 here"));
  EXPECT_THAT(joined(1, {{2000, 0}}), HasSubstr("the other trainers have 2 buckets, this one 1"));
  EXPECT_THAT(joined(1, {{2001, 0}, {40, 4}}), HasSubstr("bucket 0 has 2000 elements"));
  EXPECT_THAT(joined(0, kBuckets), HasSubstr("rank 0 is taken"));
  EXPECT_THAT(joined(3, kBuckets), HasSubstr("rank 3 of 3 trainers"));
  EXPECT_EQ(cluster.failure(), "");  // the run goes on
}

TEST(Joining, WithoutARankTakesAFreeOne) {
  AveragingCluster cluster(true, averaging_job(2, 2), testing::on_arrival());
  auto options = cluster.client_options(0, kBuckets);
  options.links.index.reset();
  const auto a = AveragingClient::join(options, cluster.connector());
  const auto b = AveragingClient::join(options, cluster.connector());
  ASSERT_TRUE(a && b);
  EXPECT_EQ((*a)->rank().value + (*b)->rank().value, 1u);
  EXPECT_FALSE(AveragingClient::join(options, cluster.connector()));
}

TEST(Joining, TooLateEndsTheRun) {
  auto options = averaging_job(2);
  options.join_timeout = std::chrono::milliseconds(1);
  AveragingCluster cluster(true, options, testing::on_arrival());
  const auto client = cluster.join(0, kBuckets);
  client->next_batch();
  client->send(0);
  EXPECT_THAT(client->wait(0).status().message(), HasSubstr("trainer 1 has not joined within 0.001 s"));
}

// A rule of another program.
class Throwing final : public averaging::Rule {
 public:
  void process_gradient(averaging::Slot&, std::uint32_t, const averaging::Gradient&) override {}
  void average(averaging::Slot&) override { throw std::runtime_error("no average today"); }
};

TEST(ARule, ThatThrowsEndsTheRun) {
  for (const std::size_t inline_elements : {std::size_t{0}, std::size_t{1} << 20}) {
    auto options = averaging_job(1);
    options.inline_elements = inline_elements;
    AveragingCluster cluster(true, options, [] { return std::make_unique<Throwing>(); });
    const auto client = cluster.join(0, kBuckets);
    client->next_batch();
    client->send(0);
    EXPECT_THAT(client->wait(0).status().message(),
                HasSubstr("averaging bucket 0 of batch 0 has failed: no average today"));
  }
}

}  // namespace
}  // namespace capstan
