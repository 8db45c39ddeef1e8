// The check of the wire benchmark must find every kind of error.

#include "capstan/bench/wire_check.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/bench/scalar_reference.h"

namespace capstan::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

optimizer::Options plain_sgd() {
  auto options = optimizer::defaults(optimizer::Kind::kSgd);
  options.lr = 0.25;
  options.momentum = 0;
  return options;
}

// Two workers in sync, 13 steps: w = 1/2 - 1/4 Σ (g0 + g1) / 2.
std::vector<WorkerObservation> right() {
  std::vector<WorkerObservation> observations(2);
  double w = 0.5;
  for (std::uint64_t i = 0; i < 13; ++i) {
    w -= 0.25 * (static_cast<double>(wire_gradient(0, i)) + wire_gradient(1, i)) / 2;
    for (auto& s : observations) s.applied.push_back(i + 1);
  }
  for (auto& s : observations) s.weight = w, s.version = 13;
  return observations;
}

TEST(WireCheck, AcceptsRightWeights) {
  EXPECT_THAT(check_weights(right(), plain_sgd()), IsEmpty());
}

TEST(WireCheck, FindsAWrongWeight) {
  for (const double wrong : {0.5, 0.0, std::numeric_limits<double>::quiet_NaN()}) {
    auto observations = right();
    observations[1].weight = wrong;
    EXPECT_THAT(check_weights(observations, plain_sgd()), HasSubstr("worker 1 has weight")) << wrong;
  }
}

TEST(WireCheck, FindsAnUpdateThatDidNotHappen) {
  auto observations = right();
  const double last = (static_cast<double>(wire_gradient(0, 12)) + wire_gradient(1, 12)) / 2;
  for (auto& s : observations) s.weight += 0.25 * last;
  EXPECT_THAT(check_weights(observations, plain_sgd()), HasSubstr("the reference is"));
}

TEST(WireCheck, FindsWeightsThatDiffer) {
  auto observations = right();
  observations[0].unlike = 3;
  EXPECT_THAT(check_weights(observations, plain_sgd()), HasSubstr("3 weights that differ"));
}

TEST(WireCheck, FindsDroppedPushesAndVersionsWithoutAPush) {
  auto observations = right();
  observations[0].applied[4] = 0;
  EXPECT_THAT(check_weights(observations, plain_sgd()), HasSubstr("dropped"));
  observations = right();
  for (auto& s : observations) s.applied.back() = 99;
  EXPECT_THAT(check_weights(observations, plain_sgd()), HasSubstr("version 13 contains no push"));
  observations = right();
  observations[1].version = 14;
  EXPECT_THAT(check_weights(observations, plain_sgd()), HasSubstr("which no push made"));
}

}  // namespace
}  // namespace capstan::bench
