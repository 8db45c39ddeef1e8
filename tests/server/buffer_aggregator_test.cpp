#include "capstan/server/buffer_aggregator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace capstan::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A layout of one value, padded to 64 bytes.
class Aggregator : public ::testing::Test {
 protected:
  const FlatLayout layout_ = FlatLayout({{"running_mean", {1}}});
  BufferAggregator aggregator_;
  std::vector<std::vector<float>> means_;

  void SetUp() override { aggregator_.set_layout(layout_); }
  std::vector<float> flat(float value) const {
    std::vector<float> values(layout_.size());
    values[0] = value;
    return values;
  }
  void send(std::uint32_t worker, float value) { aggregator_.receive({worker}, flat(value)); }
  void request() {
    aggregator_.request([this](std::vector<float> mean) { means_.push_back(std::move(mean)); },
                        TimePoint::max());
  }
  // The means that request() delivered, in order; -1 for an empty one.
  std::vector<float> means() const {
    std::vector<float> values;
    for (const auto& mean : means_) values.push_back(mean.empty() ? -1 : mean[0]);
    return values;
  }
};

TEST_F(Aggregator, ComputesTheMeanWhenAllHaveSent) {
  for (std::uint32_t w = 0; w < 3; ++w) aggregator_.joined({w});
  EXPECT_FALSE(aggregator_.is_requested({0}));
  request();
  EXPECT_TRUE(aggregator_.is_requested({0}) && aggregator_.is_requested({1}) &&
              aggregator_.is_requested({2}));
  EXPECT_FALSE(aggregator_.is_requested({3}));
  send(0, 1);
  EXPECT_FALSE(aggregator_.is_requested({0}));
  send(2, 5);
  send(9, 1000);  // an unknown worker
  EXPECT_THAT(means(), IsEmpty());
  send(1, 3);
  EXPECT_THAT(means(), ElementsAre(3));
  EXPECT_EQ(aggregator_.newest(), flat(3));
}

// A worker claims a layout when it joins; there need not be memory for it.
TEST(HugeBuffers, NeedNoMemoryBeforeTheyHaveArrived) {
  BufferAggregator aggregator;
  aggregator.set_layout(FlatLayout({{"a", {std::int64_t{1} << 50}}}));
  aggregator.joined({0});
  bool done = false;
  aggregator.request([&](const std::vector<float>& mean) { done = mean.empty(); }, TimePoint::max());
  aggregator.worker_ended({0}, true);
  EXPECT_TRUE(done);
}

TEST_F(Aggregator, SumsInMoreThanSinglePrecision) {
  for (std::uint32_t w = 0; w < 4; ++w) aggregator_.joined({w});
  request();
  send(0, 16777216);
  send(1, 1);
  send(2, 1);
  send(3, 16777214);
  EXPECT_THAT(means(), ElementsAre(8388608));  // (2^24 + 1 + 1 + 2^24 - 2) / 4
}

TEST_F(Aggregator, WaitsForWorkersThatSentTheirsBefore) {
  aggregator_.joined({0});
  send(0, 7);
  request();
  EXPECT_THAT(means(), IsEmpty());
  send(0, 8);
  EXPECT_THAT(means(), ElementsAre(8));
}

TEST_F(Aggregator, AnswersAtOnceWithoutWorkers) {
  request();
  EXPECT_THAT(means(), ElementsAre(-1));
  aggregator_.restore(layout_, flat(4));
  request();
  EXPECT_THAT(means(), ElementsAre(-1, 4));
}

TEST_F(Aggregator, AnswersAtOnceIfTheModelHasNoBuffers) {
  BufferAggregator empty;
  empty.set_layout(FlatLayout());
  empty.joined({0});
  bool answered = false;
  empty.request([&](const std::vector<float>& mean) { answered = mean.empty(); }, TimePoint::max());
  EXPECT_TRUE(answered);
  EXPECT_FALSE(empty.is_requested({0}));
}

TEST_F(Aggregator, DoesNotWaitForTheLostNorCountThem) {
  for (std::uint32_t w = 0; w < 3; ++w) aggregator_.joined({w});
  request();
  send(0, 1);
  send(1, 3);
  aggregator_.worker_ended({2}, true);
  EXPECT_THAT(means(), ElementsAre(2));
  request();
  send(0, 10);
  aggregator_.worker_ended({1}, true);  // its buffers are discarded
  EXPECT_THAT(means(), ElementsAre(2, 10));
  aggregator_.worker_ended({7}, true);
}

TEST_F(Aggregator, CountsWorkersThatLeftIfNoneIsPresent) {
  for (std::uint32_t w = 0; w < 3; ++w) aggregator_.joined({w});
  send(0, 1);
  aggregator_.worker_ended({0}, false);
  request();
  EXPECT_FALSE(aggregator_.is_requested({0}));
  send(1, 5);
  send(2, 7);
  EXPECT_THAT(means(), ElementsAre(6));
  aggregator_.worker_ended({1}, false);
  aggregator_.worker_ended({2}, false);
  request();
  EXPECT_THAT(means(), ElementsAre(6, (1 + 5 + 7) / 3.0f));
}

TEST_F(Aggregator, NeverCountsTheLost) {
  aggregator_.joined({0});
  aggregator_.joined({1});
  send(0, 1);
  send(1, 5);
  aggregator_.worker_ended({0}, true);
  aggregator_.worker_ended({1}, false);
  request();
  EXPECT_THAT(means(), ElementsAre(5));
}

TEST_F(Aggregator, KeepsTheNewestIfAllAreLost) {
  aggregator_.joined({0});
  request();
  send(0, 9);
  request();
  aggregator_.worker_ended({0}, true);
  EXPECT_THAT(means(), ElementsAre(9, 9));
}

TEST_F(Aggregator, DoesNotWaitForWorkersThatJoinLater) {
  aggregator_.joined({0});
  request();
  aggregator_.joined({1});
  EXPECT_FALSE(aggregator_.is_requested({1}));
  send(0, 2);
  EXPECT_THAT(means(), ElementsAre(2));
  request();
  EXPECT_TRUE(aggregator_.is_requested({1}));
  send(1, 4);
  send(0, 3);
  EXPECT_THAT(means(), ElementsAre(2, 3.5f));
}

TEST_F(Aggregator, ANewIncarnationHasSentNothing) {
  aggregator_.joined({0});
  send(0, 2);
  aggregator_.worker_ended({0}, true);
  aggregator_.joined({0});
  request();
  EXPECT_THAT(means(), IsEmpty());
  send(0, 5);
  EXPECT_THAT(means(), ElementsAre(5));
  aggregator_.worker_ended({0}, false);
  aggregator_.joined({1});
  request();
  aggregator_.joined({0});  // not waited for; the buffers of its earlier incarnation do not count
  send(1, 9);
  EXPECT_THAT(means(), ElementsAre(5, 9));
}

TEST_F(Aggregator, EachRequestWaitsForBuffersSentAfterIt) {
  aggregator_.joined({0});
  aggregator_.joined({1});
  request();
  send(0, 1);
  request();
  send(1, 3);
  EXPECT_THAT(means(), ElementsAre(2)) << "the second request waits for worker 0";
  EXPECT_TRUE(aggregator_.is_requested({0}));
  EXPECT_FALSE(aggregator_.is_requested({1}));
  send(0, 7);
  EXPECT_THAT(means(), ElementsAre(2, 5));
}

TEST_F(Aggregator, ACallbackMayRequestAgain) {
  aggregator_.joined({0});
  aggregator_.request(
      [this](std::vector<float> mean) {
        means_.push_back(std::move(mean));
        request();
      },
      TimePoint::max());
  send(0, 1);
  EXPECT_THAT(means(), ElementsAre(1));
  EXPECT_TRUE(aggregator_.is_requested({0}));
  send(0, 2);
  EXPECT_THAT(means(), ElementsAre(1, 2));
}

TEST_F(Aggregator, AllWorkersHaveTheSameBuffers) {
  EXPECT_EQ(aggregator_.difference(layout_), "");
  EXPECT_THAT(aggregator_.difference(FlatLayout({{"running_mean", {2}}})), HasSubstr("running_mean"));
  EXPECT_NE(aggregator_.difference(FlatLayout()), "");
  BufferAggregator none;
  EXPECT_EQ(none.difference(layout_), "") << "no layout is set yet";
  none.set_layout(FlatLayout());
  EXPECT_EQ(none.difference(FlatLayout()), "");
  EXPECT_NE(none.difference(layout_), "") << "an empty layout is a layout, too";
  BufferAggregator restored;
  restored.restore(layout_, flat(1));
  EXPECT_NE(restored.difference(FlatLayout()), "");
}

// One straggler must not prevent a checkpoint.
TEST_F(Aggregator, AtTheDeadlineUsesTheBuffersReceived) {
  const TimePoint deadline{std::chrono::seconds(10)};
  const auto request_by_deadline = [&] {
    aggregator_.request([this](std::vector<float> mean) { means_.push_back(std::move(mean)); }, deadline);
  };
  for (std::uint32_t w = 0; w < 3; ++w) aggregator_.joined({w});
  request_by_deadline();
  send(0, 1);
  send(1, 3);
  aggregator_.tick(deadline - std::chrono::nanoseconds(1));
  EXPECT_THAT(means(), ElementsAre()) << "worker 2 still has time";
  aggregator_.tick(deadline);
  EXPECT_THAT(means(), ElementsAre(2)) << "the mean over those that have sent";
  EXPECT_FALSE(aggregator_.is_requested({2})) << "the request is complete";
  request_by_deadline();
  send(0, 5);
  send(2, 10);
  aggregator_.tick(deadline);
  EXPECT_THAT(means(), ElementsAre(2, 6)) << "with the last buffers of worker 1: (5 + 3 + 10) / 3";
}

}  // namespace
}  // namespace capstan::server
