// The records of hand-made events.
#include "capstan/server/update_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace capstan::server {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

constexpr WorkerId kFirst{0}, kSecond{1};

TimePoint at(int ms) {
  return TimePoint() + milliseconds(ms);
}

class UpdateRecorderTest : public ::testing::Test, public UpdateObserver {
 protected:
  void on_update(const UpdateRecord& record) override { records.push_back(record); }

  void push(WorkerId worker, std::uint64_t sequence, int ms) {
    wire::Push push;
    push.worker = worker;
    push.incarnation = {worker.value + 7};
    push.sequence = {sequence};
    push.steps = {10 * sequence};
    push.samples = 32;
    recorder.pushed(push, at(ms));
  }
  std::uint64_t order(std::vector<wire::Contribution> contributions, std::uint64_t before,
                      std::uint32_t group = 0, std::size_t depth = 0) {
    wire::ApplyOrder order;
    order.before = {before};
    order.group = group;
    order.contributions = std::move(contributions);
    return recorder.ordered(order, depth, 100);
  }
  void answer(WorkerId worker, int ms) {
    recorder.answering(worker);
    recorder.answered(worker, 40, at(ms));
  }
  std::vector<std::uint64_t> bases(const UpdateRecord& record) const {
    std::vector<std::uint64_t> list;
    for (const auto& c : record.contributions) list.push_back(c.base.value);
    return list;
  }

  std::vector<UpdateRecord> records;
  UpdateRecorder recorder{*this};
};

TEST_F(UpdateRecorderTest, AnUpdateIsCompleteWhenItIsAppliedAndAnswered) {
  push(kSecond, 1, 3);
  push(kFirst, 1, 8);
  push(kSecond, 1, 9);  // repeated
  const auto number = order({{kFirst, {1}, 1}, {kSecond, {1}, 1}}, 0, 0, 2);
  recorder.applied(number, milliseconds(2), at(11));
  answer(kFirst, 12);
  EXPECT_EQ(records.size(), 0u);
  answer(kSecond, 15);
  ASSERT_EQ(records.size(), 1u);
  const auto& r = records[0];
  EXPECT_EQ(r.version, Version{1});
  EXPECT_EQ(r.first(), at(3));
  EXPECT_EQ(r.last(), at(8));
  EXPECT_EQ(r.applied, at(11));
  EXPECT_EQ(r.answered, at(15));
  EXPECT_EQ(r.applying, milliseconds(2));
  EXPECT_EQ(r.queue_depth, 2u);
  EXPECT_EQ(r.bytes_in, 100u);
  EXPECT_EQ(r.bytes_out, 80u);
  ASSERT_EQ(r.contributions.size(), 2u);
  EXPECT_EQ(r.contributions[0].worker, kSecond);
  EXPECT_EQ(r.contributions[0].push, Sequence{1});
  EXPECT_EQ(r.contributions[0].steps, StepCount{10});
  EXPECT_EQ(r.contributions[0].samples, 32u);
}

// The second worker is still computing on the initial weights when the first pushes again.
TEST_F(UpdateRecorderTest, ABaseIsTheVersionOfTheLastAnswer) {
  for (std::uint64_t i = 1; i <= 2; ++i) {
    push(kFirst, i, 1);
    recorder.applied(order({{kFirst, {i}, 1}}, i - 1), {}, at(2));
    answer(kFirst, 3);
  }
  push(kSecond, 1, 4);
  recorder.applied(order({{kSecond, {1}, 1}}, 2), {}, at(5));
  answer(kSecond, 6);
  push(kSecond, 2, 7);
  recorder.applied(order({{kSecond, {2}, 1}}, 3), {}, at(8));
  answer(kSecond, 9);
  ASSERT_EQ(records.size(), 4u);
  EXPECT_THAT(bases(records[0]), ElementsAre(0));
  EXPECT_THAT(bases(records[1]), ElementsAre(1));
  EXPECT_THAT(bases(records[2]), ElementsAre(0));
  EXPECT_THAT(bases(records[3]), ElementsAre(3));
}

TEST_F(UpdateRecorderTest, GroupsHaveVersionsOfTheirOwnAndTheFirstCountsAnAnswer) {
  push(kFirst, 1, 1);
  const auto rows = order({{kFirst, {1}, 1}}, 4, 1), dense = order({{kFirst, {1}, 1}}, 0, 0);
  recorder.applied(rows, {}, at(2));
  recorder.applied(dense, {}, at(3));
  answer(kFirst, 4);
  push(kFirst, 2, 5);
  recorder.applied(order({{kFirst, {2}, 1}}, 5, 1), {}, at(6));
  answer(kFirst, 7);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].group, 1u);
  EXPECT_EQ(records[0].bytes_out, 40u);
  EXPECT_EQ(records[1].bytes_out, 0u);
  EXPECT_THAT(bases(records[2]), ElementsAre(5));
}

TEST_F(UpdateRecorderTest, ASumHasContributionsThatWereAnsweredBefore) {
  for (std::uint64_t i = 1; i <= 3; ++i) {
    push(kFirst, i, static_cast<int>(i));
    recorder.accumulated({{kFirst, {i}, 1}, i == 1}, 10);
    if (i < 3) answer(kFirst, static_cast<int>(i));
  }
  wire::ApplyOrder all;
  all.accumulated = true;
  const auto number = recorder.ordered(all, 0, 0);
  answer(kFirst, 20);
  EXPECT_EQ(records.size(), 0u);
  recorder.applied(number, {}, at(30));
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].contributions.size(), 3u);
  EXPECT_EQ(records[0].bytes_in, 30u);
  EXPECT_EQ(records[0].bytes_out, 120u);
  EXPECT_EQ(records[0].answered, at(30));
}

TEST_F(UpdateRecorderTest, ALostWorkerCountsAsAnswered) {
  push(kFirst, 1, 1);
  push(kSecond, 1, 2);
  recorder.applied(order({{kFirst, {1}, 1}, {kSecond, {1}, 1}}, 0), {}, at(3));
  answer(kFirst, 4);
  recorder.ended(kSecond, at(9));
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].answered, at(9));
  EXPECT_EQ(records[0].bytes_out, 40u);
}

}  // namespace
}  // namespace capstan::server
