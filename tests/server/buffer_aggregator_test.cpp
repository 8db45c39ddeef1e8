#include "capstan/server/buffer_aggregator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace capstan::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One value, at the beginning of what 64-byte boundaries make of it.
class Aggregator : public ::testing::Test {
 protected:
  const FlatLayout layout_ = FlatLayout({{"running_mean", {1}}});
  BufferAggregator book_;
  std::vector<std::vector<float>> heard_;

  void SetUp() override { book_.agree(layout_); }
  std::vector<float> flat(float value) const {
    std::vector<float> values(layout_.size());
    values[0] = value;
    return values;
  }
  void tell(std::uint32_t worker, float value) { book_.told({worker}, flat(value)); }
  void want() {
    book_.want([this](std::vector<float> mean) { heard_.push_back(std::move(mean)); }, TimePoint::max());
  }
  // What the callers of want() got, in order; -1 for nothing.
  std::vector<float> heard() const {
    std::vector<float> values;
    for (const auto& mean : heard_) values.push_back(mean.empty() ? -1 : mean[0]);
    return values;
  }
};

TEST_F(Aggregator, FormsTheMeanWhenAllHaveTold) {
  for (std::uint32_t w = 0; w < 3; ++w) book_.joined({w});
  EXPECT_FALSE(book_.wants({0}));
  want();
  EXPECT_TRUE(book_.wants({0}) && book_.wants({1}) && book_.wants({2}));
  EXPECT_FALSE(book_.wants({3}));
  tell(0, 1);
  EXPECT_FALSE(book_.wants({0}));
  tell(2, 5);
  tell(9, 1000);  // a idle_peer
  EXPECT_THAT(heard(), IsEmpty());
  tell(1, 3);
  EXPECT_THAT(heard(), ElementsAre(3));
  EXPECT_EQ(book_.newest(), flat(3));
}

TEST_F(Aggregator, SumsInMoreThanSinglePrecision) {
  for (std::uint32_t w = 0; w < 4; ++w) book_.joined({w});
  want();
  tell(0, 16777216);
  tell(1, 1);
  tell(2, 1);
  tell(3, 16777214);
  EXPECT_THAT(heard(), ElementsAre(8388608));  // (2^24 + 1 + 1 + 2^24 - 2) / 4
}

TEST_F(Aggregator, WaitsForWorkersThatSentTheirsBefore) {
  book_.joined({0});
  tell(0, 7);
  want();
  EXPECT_THAT(heard(), IsEmpty());
  tell(0, 8);
  EXPECT_THAT(heard(), ElementsAre(8));
}

TEST_F(Aggregator, AnswersAtOnceWithoutWorkers) {
  want();
  EXPECT_THAT(heard(), ElementsAre(-1));
  book_.restore(layout_, flat(4));
  want();
  EXPECT_THAT(heard(), ElementsAre(-1, 4));
}

TEST_F(Aggregator, AnswersAtOnceWhereNothingIsToBeTold) {
  BufferAggregator empty;
  empty.agree(FlatLayout());
  empty.joined({0});
  bool answered = false;
  empty.want([&](const std::vector<float>& mean) { answered = mean.empty(); }, TimePoint::max());
  EXPECT_TRUE(answered);
  EXPECT_FALSE(empty.wants({0}));
}

TEST_F(Aggregator, DoesNotWaitForTheLostNorCountThem) {
  for (std::uint32_t w = 0; w < 3; ++w) book_.joined({w});
  want();
  tell(0, 1);
  tell(1, 3);
  book_.gone({2}, true);
  EXPECT_THAT(heard(), ElementsAre(2));
  want();
  tell(0, 10);
  book_.gone({1}, true);  // what it told before goes with it
  EXPECT_THAT(heard(), ElementsAre(2, 10));
  book_.gone({7}, true);
}

TEST_F(Aggregator, CountsWorkersThatLeftWhereNoneIsHere) {
  for (std::uint32_t w = 0; w < 3; ++w) book_.joined({w});
  tell(0, 1);
  book_.gone({0}, false);
  want();
  EXPECT_FALSE(book_.wants({0}));
  tell(1, 5);
  tell(2, 7);
  EXPECT_THAT(heard(), ElementsAre(6));
  book_.gone({1}, false);
  book_.gone({2}, false);
  want();
  EXPECT_THAT(heard(), ElementsAre(6, (1 + 5 + 7) / 3.0f));
}

TEST_F(Aggregator, NeverCountsTheLost) {
  book_.joined({0});
  book_.joined({1});
  tell(0, 1);
  tell(1, 5);
  book_.gone({0}, true);
  book_.gone({1}, false);
  want();
  EXPECT_THAT(heard(), ElementsAre(5));
}

TEST_F(Aggregator, KeepsTheNewestWhereAllAreLost) {
  book_.joined({0});
  want();
  tell(0, 9);
  want();
  book_.gone({0}, true);
  EXPECT_THAT(heard(), ElementsAre(9, 9));
}

TEST_F(Aggregator, DoesNotWaitForWorkersThatJoinLater) {
  book_.joined({0});
  want();
  book_.joined({1});
  EXPECT_FALSE(book_.wants({1}));
  tell(0, 2);
  EXPECT_THAT(heard(), ElementsAre(2));
  want();
  EXPECT_TRUE(book_.wants({1}));
  tell(1, 4);
  tell(0, 3);
  EXPECT_THAT(heard(), ElementsAre(2, 3.5f));
}

TEST_F(Aggregator, ANewIncarnationHasSentNothing) {
  book_.joined({0});
  tell(0, 2);
  book_.gone({0}, true);
  book_.joined({0});
  want();
  EXPECT_THAT(heard(), IsEmpty());
  tell(0, 5);
  EXPECT_THAT(heard(), ElementsAre(5));
  book_.gone({0}, false);
  book_.joined({1});
  want();
  book_.joined({0});  // not waited for, and what its history before told is not its own
  tell(1, 9);
  EXPECT_THAT(heard(), ElementsAre(5, 9));
}

TEST_F(Aggregator, SeveralMayWaitEachForNewsAfterItsOwnQuestion) {
  book_.joined({0});
  book_.joined({1});
  want();
  tell(0, 1);
  want();
  tell(1, 3);
  EXPECT_THAT(heard(), ElementsAre(2)) << "the second waits for news of 0";
  EXPECT_TRUE(book_.wants({0}));
  EXPECT_FALSE(book_.wants({1}));
  tell(0, 7);
  EXPECT_THAT(heard(), ElementsAre(2, 5));
}

TEST_F(Aggregator, ACallerThatIsAnsweredMayAskAgain) {
  book_.joined({0});
  book_.want(
      [this](std::vector<float> mean) {
        heard_.push_back(std::move(mean));
        want();
      },
      TimePoint::max());
  tell(0, 1);
  EXPECT_THAT(heard(), ElementsAre(1));
  EXPECT_TRUE(book_.wants({0}));
  tell(0, 2);
  EXPECT_THAT(heard(), ElementsAre(1, 2));
}

TEST_F(Aggregator, AllWorkersHaveTheSameBuffers) {
  EXPECT_EQ(book_.difference(layout_), "");
  EXPECT_THAT(book_.difference(FlatLayout({{"running_mean", {2}}})), HasSubstr("running_mean"));
  EXPECT_NE(book_.difference(FlatLayout()), "");
  BufferAggregator none;
  EXPECT_EQ(none.difference(layout_), "") << "nothing is agreed yet";
  none.agree(FlatLayout());
  EXPECT_EQ(none.difference(FlatLayout()), "");
  EXPECT_NE(none.difference(layout_), "") << "none is an agreement, too";
  BufferAggregator restored;
  restored.restore(layout_, flat(1));
  EXPECT_NE(restored.difference(FlatLayout()), "");
}

// One straggler must not keep a checkpoint from being made.
TEST_F(Aggregator, AtTheDeadlineUsesWhatIsKnown) {
  const TimePoint deadline{std::chrono::seconds(10)};
  const auto want_in_time = [&] {
    book_.want([this](std::vector<float> mean) { heard_.push_back(std::move(mean)); }, deadline);
  };
  for (std::uint32_t w = 0; w < 3; ++w) book_.joined({w});
  want_in_time();
  tell(0, 1);
  tell(1, 3);
  book_.tick(deadline - std::chrono::nanoseconds(1));
  EXPECT_THAT(heard(), ElementsAre()) << "worker 2 still has time";
  book_.tick(deadline);
  EXPECT_THAT(heard(), ElementsAre(2)) << "the mean over those that have told";
  EXPECT_FALSE(book_.wants({2})) << "the question is settled";
  want_in_time();
  tell(0, 5);
  tell(2, 10);
  book_.tick(deadline);
  EXPECT_THAT(heard(), ElementsAre(2, 6)) << "of worker 1 what it told last: (5 + 3 + 10) / 3";
}

}  // namespace
}  // namespace capstan::server
