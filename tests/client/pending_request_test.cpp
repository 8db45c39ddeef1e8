#include "capstan/client/pending_request.h"

#include <gtest/gtest.h>

namespace capstan::client {
namespace {

wire::Push push(std::uint64_t sequence) {
  wire::Push push;
  push.sequence = {sequence};
  return push;
}

wire::Weights weights(std::uint64_t version) {
  wire::Weights weights;
  weights.version = {version};
  return weights;
}

TEST(PendingRequest, WaitsForEveryServersAnswerToAPush) {
  PendingRequest request(2);
  EXPECT_FALSE(request.is_waiting());
  EXPECT_FALSE(request.expects(0, 0)) << "nothing is requested";
  request.begin(push(7));
  EXPECT_FALSE(request.expects(0, 6)) << "an answer to the push before";
  ASSERT_TRUE(request.expects(1, 7));
  request.answer(1, weights(20));
  EXPECT_FALSE(request.expects(1, 7)) << "it has answered";
  EXPECT_TRUE(request.is_waiting());
  request.answer(0, weights(3));
  EXPECT_FALSE(request.is_waiting());
  EXPECT_EQ(request.answer().version, Version{3}) << "of the first server";
}

TEST(PendingRequest, ANewNumberDiscardsEarlierAnswersAndKeepsThePush) {
  PendingRequest request(2);
  request.begin(push(7));
  request.answer(0, weights(3));
  const auto number = request.renumber();
  EXPECT_EQ(request.push()->sequence, Sequence{7});
  EXPECT_FALSE(request.expects(1, 7));
  EXPECT_TRUE(request.expects(0, number));
  EXPECT_NE(request.renumber(), number);
  EXPECT_FALSE(request.expects(0, number));
}

TEST(PendingRequest, APullHasNoPushAndANumberThatNoPushHas) {
  PendingRequest request(1);
  request.begin(push(1));
  const auto number = request.begin_pull();
  EXPECT_FALSE(request.push());
  EXPECT_GE(number, std::uint64_t{1} << 63);
  request.cancel();
  EXPECT_FALSE(request.is_waiting());
  EXPECT_FALSE(request.expects(0, number));
}

}  // namespace
}  // namespace capstan::client
