// The reference for the kernels, against numbers computed by hand.

#include "capstan/bench/scalar_reference.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace capstan::bench {
namespace {

using optimizer::Kind;

optimizer::Options options(Kind kind, double lr) {
  auto o = optimizer::defaults(kind);
  o.lr = lr;
  return o;
}

TEST(ScalarReference, BeginsAtAHalf) {
  EXPECT_EQ(ScalarReference(options(Kind::kSgd, 0.1)).weight(), 0.5);
}

TEST(ScalarReference, PlainSgdSubtractsTheGradient) {
  ScalarReference r(options(Kind::kSgd, 0.1));
  r.step(2);  // 0.5 - 0.1·2
  EXPECT_DOUBLE_EQ(r.weight(), 0.3);
  r.step(-1);
  EXPECT_DOUBLE_EQ(r.weight(), 0.4);
}

TEST(ScalarReference, NoneAddsTheContribution) {
  ScalarReference r(options(Kind::kNone, 0.1));
  r.step(0.25);
  EXPECT_DOUBLE_EQ(r.weight(), 0.75);
}

// m: 1, 0.9·1 + 3 = 3.9, 0.9·3.9 + 0 = 3.51; w: 0.5 - 0.1·1 = 0.4, 0.4 - 0.39 = 0.01, 0.01 - 0.351 = -0.341
TEST(ScalarReference, MomentumAddsUp) {
  auto o = options(Kind::kSgd, 0.1);
  o.momentum = 0.9;
  ScalarReference r(o);
  r.step(1);
  EXPECT_DOUBLE_EQ(r.weight(), 0.4);
  r.step(3);
  EXPECT_NEAR(r.weight(), 0.01, 1e-15);
  r.step(0);
  EXPECT_NEAR(r.weight(), -0.341, 1e-15);
}

// The first buffer is the whole gradient, whatever the dampening: m: 1, then 0.5·1 + 0.75·2 = 2.
TEST(ScalarReference, DampeningBeginsWithTheSecondStep) {
  auto o = options(Kind::kSgd, 0.1);
  o.momentum = 0.5;
  o.dampening = 0.25;
  ScalarReference r(o);
  r.step(1);
  r.step(2);
  EXPECT_NEAR(r.weight(), 0.5 - 0.1 - 0.2, 1e-15);
}

// Nesterov: w -= 0.1·(g + 0.9·m) with m = 1 then 2.9: 0.5 - 0.19 = 0.31; 0.31 - 0.1·(2 + 2.61) = -0.151
TEST(ScalarReference, NesterovLooksAhead) {
  auto o = options(Kind::kSgd, 0.1);
  o.momentum = 0.9;
  o.nesterov = true;
  ScalarReference r(o);
  r.step(1);
  EXPECT_NEAR(r.weight(), 0.31, 1e-15);
  r.step(2);
  EXPECT_NEAR(r.weight(), -0.151, 1e-15);
}

// g + 0.1·0.5 = 1.05
TEST(ScalarReference, WeightDecayAddsToTheGradient) {
  auto o = options(Kind::kSgd, 0.1);
  o.weight_decay = 0.1;
  ScalarReference r(o);
  r.step(1);
  EXPECT_NEAR(r.weight(), 0.5 - 0.105, 1e-15);
}

// Bias correction makes the first step lr·sign(g). Second, with g = 2 then 1 and betas 0.5:
// m = 1 → 1, then 0.5·1 + 0.5·1 = 1; m̂ = 1/0.75; v = 2, then 0.5·2 + 0.5·1 = 1.5; v̂ = 1.5/0.75 = 2.
TEST(ScalarReference, AdamCorrectsItsBias) {
  auto o = options(Kind::kAdam, 0.1);
  o.beta1 = o.beta2 = 0.5;
  o.eps = 0;
  ScalarReference r(o);
  r.step(2);
  EXPECT_NEAR(r.weight(), 0.4, 1e-15);
  r.step(1);
  EXPECT_NEAR(r.weight(), 0.4 - 0.1 * (4.0 / 3) / std::sqrt(2.0), 1e-15);
}

// AdamW shrinks the weight first: 0.5 - 0.1·0.2·0.5 = 0.49, then lr·sign(g).
TEST(ScalarReference, AdamWDecouplesWeightDecay) {
  auto o = options(Kind::kAdamW, 0.1);
  o.weight_decay = 0.2;
  o.eps = 0;
  ScalarReference r(o);
  r.step(-3);
  EXPECT_NEAR(r.weight(), 0.59, 1e-14);
}

// sums 4, 4 + 9 = 13; the second rate is 0.1/(1 + 0.5).
TEST(ScalarReference, AdagradSlowsDown) {
  auto o = options(Kind::kAdagrad, 0.1);
  o.eps = 0;
  o.lr_decay = 0.5;
  ScalarReference r(o);
  r.step(2);
  EXPECT_NEAR(r.weight(), 0.4, 1e-15);
  r.step(3);
  EXPECT_NEAR(r.weight(), 0.4 - 0.1 / 1.5 * 3 / std::sqrt(13.0), 1e-15);
}

// v = 0.75·0 + 0.25·4 = 1: step 0.1·2/1.
TEST(ScalarReference, RmsPropDividesByTheMeanSquare) {
  auto o = options(Kind::kRmsProp, 0.1);
  o.alpha = 0.75;
  o.eps = 0;
  ScalarReference r(o);
  r.step(2);
  EXPECT_NEAR(r.weight(), 0.3, 1e-15);
}

TEST(WireGradient, IsExactAndDiffersByWorker) {
  std::set<float> seen;
  for (std::uint32_t worker = 0; worker < 4; ++worker) {
    for (std::uint64_t i = 0; i < 11; ++i) {
      const float g = wire_gradient(worker, i);
      EXPECT_EQ(g * 64, std::round(g * 64));
      EXPECT_LE(std::abs(g), 6.0f / 64);
      seen.insert(g);
    }
    EXPECT_NE(wire_gradient(worker, 0), wire_gradient(worker + 1, 0));
  }
  EXPECT_EQ(seen.size(), 11u);
}

// A server that does nothing must be detected.
TEST(WireGradient, DoesNotSumToZero) {
  for (std::uint32_t worker = 0; worker < 4; ++worker) {
    for (const std::uint64_t count : {13, 33, 103, 1003, 10003}) {
      double sum = 0;
      for (std::uint64_t i = 0; i < count; ++i) sum += wire_gradient(worker, i);
      EXPECT_GT(std::abs(sum), 0.05) << worker << " after " << count;
      EXPECT_LT(std::abs(sum), 20) << worker << " after " << count;
    }
  }
}

}  // namespace
}  // namespace capstan::bench
