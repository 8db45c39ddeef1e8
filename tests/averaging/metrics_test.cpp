// What a server and a client measure.

#include <mutex>

#include <gtest/gtest.h>

#include "averaging/play.h"

namespace capstan {
namespace {

using testing::averaging_job;
using testing::AveragingCluster;
using testing::Play;

class Recorder final : public averaging::Observer {
 public:
  void on_bucket(const averaging::BucketTimes& times) override { all.push_back(times); }
  std::vector<averaging::BucketTimes> all;  // read after the server's thread has ended
};

TEST(Metrics, OfAServerAreOnePerBatchAndBucket) {
  const Play play{5, 2, 4, {{3000, 0}, {40, 4}}};
  Recorder recorder;
  {
    AveragingCluster cluster(true, averaging_job(2), testing::on_arrival(), &recorder);
    testing::expect_averages(testing::train_all(cluster, play), play);
  }
  ASSERT_EQ(recorder.all.size(), 8u);
  std::map<std::pair<std::uint64_t, std::uint32_t>, int> seen;
  for (const auto& times : recorder.all) {
    EXPECT_EQ(++seen[std::pair(times.batch, times.bucket)], 1);
    EXPECT_LE(times.first, times.last);
    EXPECT_LE(times.last, times.answered);
    EXPECT_LE(times.averaging, times.answered - times.last);
    std::uint64_t in = 0;
    std::vector<testing::Rows> gradients;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      gradients.push_back(
          testing::gradient_of(5, rank, times.batch, times.bucket, play.buckets[times.bucket]));
      in += gradients.back().size() * 4 * (4 + 1);
    }
    const auto out = testing::average_of(gradients).rows.size() * 4 * (4 + 1) * 2;
    EXPECT_EQ(times.bytes_in, times.bucket == 0 ? 3000u * 4 * 2 : in);
    EXPECT_EQ(times.bytes_out, times.bucket == 0 ? 3000u * 4 * 2 : out);
  }
}

// The average arrives while no thread waits for it.
TEST(Metrics, OfAClientDoNotNeedAWait) {
  AveragingCluster cluster(true, averaging_job(1), testing::on_arrival());
  auto options = cluster.client_options(0, {{100, 0}, {8, 0}});
  std::mutex mutex;
  std::map<std::uint32_t, TimePoint> sent, arrived;
  std::promise<void> both;
  options.on_sent = [&](std::uint64_t, std::uint32_t bucket, TimePoint at) {
    const std::scoped_lock lock(mutex);
    sent[bucket] = at;
  };
  options.on_average = [&](std::uint64_t batch, std::uint32_t bucket, TimePoint at) {
    const std::scoped_lock lock(mutex);
    EXPECT_EQ(batch, 0u);
    arrived[bucket] = at;
    if (arrived.size() == 2) both.set_value();
  };
  auto client = averaging::AveragingClient::join(options, cluster.connector());
  ASSERT_TRUE(client);
  (*client)->next_batch();
  (*client)->send(1);
  (*client)->send(0);
  both.get_future().wait();
  for (const std::uint32_t bucket : {0u, 1u}) EXPECT_LE(sent.at(bucket), arrived.at(bucket));
  EXPECT_TRUE((*client)->wait_all());
}

}  // namespace
}  // namespace capstan
