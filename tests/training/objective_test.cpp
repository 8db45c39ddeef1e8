// Losses and metrics against their definitions.

#include "capstan/training/objective.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/data/memory_source.h"
#include "capstan/user_error.h"

namespace capstan::training {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const data::SampleShape kTwoClasses{{3}, 2}, kThreeClasses{{3}, 3}, kNumbers{{3}, 0, {2}};

std::vector<double> values(const Objective& objective, const at::Tensor& output, const at::Tensor& target) {
  std::vector<double> out;
  for (const auto& sum : objective.evaluate(output, target)) out.push_back(sum.sum / sum.weight);
  return out;
}

TEST(Objective, CrossEntropyOfClasses) {
  const Objective objective("auto", kThreeClasses);
  const auto output = at::tensor({2.0f, 1.0f, 0.0f, 0.0f, 0.0f, 3.0f}).view({2, 3});
  const auto target = at::tensor({0, 1}, at::kLong);
  const double first = -std::log(std::exp(2) / (std::exp(2) + std::exp(1) + 1)),
               second = -std::log(1 / (1 + 1 + std::exp(3)));
  EXPECT_NEAR(objective.loss(output, target).item<double>(), (first + second) / 2, 1e-6);
  EXPECT_THAT(values(objective, output, target),
              ::testing::Pointwise(::testing::DoubleNear(1e-6), {0.5, (first + second) / 2, 1.0}));
  EXPECT_EQ(objective.metrics()[0].name, "accuracy");
}

TEST(Objective, BinaryCrossEntropyOfLogits) {
  const Objective objective("bce", kTwoClasses);
  const auto output = at::tensor({2.0f, -1.0f, 0.5f}).view({3, 1});
  const auto target = at::tensor({1, 0, 0}, at::kLong);
  const double expected =
      (std::log1p(std::exp(-2)) + std::log1p(std::exp(-1)) + std::log1p(std::exp(0.5))) / 3;
  EXPECT_NEAR(objective.loss(output, target).item<double>(), expected, 1e-6);
  EXPECT_THAT(values(objective, output, target),
              ::testing::Pointwise(::testing::DoubleNear(1e-6), {2.0 / 3, expected}));
}

data::MemorySource with_targets(std::vector<float> targets) {
  data::Split split;
  split.shape = kNumbers;
  split.values.resize(targets.size() / 2 * 3);
  split.targets = std::move(targets);
  return data::MemorySource(std::move(split));
}

// -(t log p + (1 - t) log(1 - p)) for the target t and the probability p of the logit.
TEST(Objective, BinaryCrossEntropyTakesProbabilitiesAsTargets) {
  const Objective objective("bce", kNumbers);
  const auto output = at::zeros({1, 2}), target = at::tensor({0.25f, 0.75f}).view({1, 2});
  EXPECT_THAT(values(objective, output, target),
              ::testing::Pointwise(::testing::DoubleNear(1e-6), {0.5, std::log(2)}));
  EXPECT_NO_THROW(objective.check_targets(with_targets({0, 1, 0.25f, 0.75f}), "training"));
}

TEST(Objective, BinaryCrossEntropyOfOtherNumbersIsRejectedWithTheFirst) {
  const Objective objective("bce", kNumbers);
  const auto rejected = [&](std::vector<float> targets, const std::string& part, const std::string& says) {
    EXPECT_THAT([&] { objective.check_targets(with_targets(std::move(targets)), part); },
                ThrowsMessage<UserError>(HasSubstr(says)));
  };
  rejected({0, 1, 1, 2, 3, 0}, "training",
           "the target of sample 1 of the training part has 2; its numbers must");
  rejected({0, -0.5f}, "test", "sample 0 of the test part has -0.5");
  rejected({0, 0, 0, 0, NAN, 1}, "test", "sample 2 of the test part has nan");
  EXPECT_NO_THROW(Objective("mse", kNumbers).check_targets(with_targets({1, 2}), "training"));
}

// Errors 1, -2, 0 and 0.5.
TEST(Objective, DistancesOfNumbers) {
  const auto output = at::tensor({1.0f, 0.0f, 3.0f, 4.5f}).view({2, 2}),
             target = at::tensor({0.0f, 2.0f, 3.0f, 4.0f}).view({2, 2});
  const double squared = (1 + 4 + 0.25) / 4, absolute = 3.5 / 4, smooth = (0.5 + 1.5 + 0.125) / 4;
  const std::pair<const char*, double> cases[] = {{"mse", squared}, {"l1", absolute}, {"smooth-l1", smooth}};
  for (const auto& [name, expected] : cases) {
    const Objective objective(name, kNumbers);
    EXPECT_NEAR(objective.loss(output, target).item<double>(), expected, 1e-6) << name;
    EXPECT_THAT(values(objective, output, target),
                ::testing::Pointwise(::testing::DoubleNear(1e-6), {squared, absolute, expected}))
        << name;
    EXPECT_EQ(objective.metrics()[0].of, Metric::Of::kRoot) << "rmse";
  }
  EXPECT_EQ(Objective("auto", kNumbers).kind(), Objective::Kind::kSquared);
}

// A column of outputs for a target of one number per sample, with or without the last dimension.
TEST(Objective, ComparesElementByElementWhateverTheDimensions) {
  const Objective objective("l1", {{3}, 0, {1}});
  const auto target = at::tensor({1.0f, 2.0f, 4.0f}).view({3, 1});
  EXPECT_NEAR(objective.loss(at::zeros({3}), target).item<double>(), 7.0 / 3, 1e-6);
  EXPECT_NEAR(objective.loss(at::zeros({3, 1}), target).item<double>(), 7.0 / 3, 1e-6);
}

TEST(Objective, ALossThatDoesNotFitTheTargetIsRejected) {
  EXPECT_THAT([] { Objective("mse", kThreeClasses); },
              ThrowsMessage<UserError>(
                  "--loss mse: does not fit the target, which is one of 3 classes: use cross-entropy"));
  EXPECT_THAT([] { Objective("bce", kThreeClasses); },
              ThrowsMessage<UserError>(HasSubstr("use cross-entropy")));
  EXPECT_THAT([] { Objective("cross-entropy", kNumbers); },
              ThrowsMessage<UserError>(HasSubstr("2 numbers: use mse, l1, smooth-l1 or bce")));
}

TEST(Objective, AnOutputThatDoesNotFitTheTargetIsRejected) {
  const Objective classes("auto", kThreeClasses), numbers("auto", kNumbers);
  EXPECT_NO_THROW(classes.check_output(at::zeros({2, 3}), 2, "net.pt"));
  EXPECT_NO_THROW(classes.check_output(at::zeros({2, 5}), 2, "net.pt"));
  EXPECT_NO_THROW(numbers.check_output(at::zeros({2, 2}), 2, "net.pt"));
  EXPECT_THAT(
      [&] {
        classes.check_output(at::zeros({2, 2}), 2, "net.pt");
      },
      ThrowsMessage<UserError>("net.pt returns a tensor of 2x2 for 2 samples; --loss cross-entropy needs 2xC "
                               "with a column for each of 3 classes"));
  EXPECT_THAT([&] { classes.check_output(at::zeros({6}), 2, "net.pt"); },
              ThrowsMessage<UserError>(HasSubstr("2xC")));
  EXPECT_THAT(
      [&] {
        numbers.check_output(at::zeros({2, 3}), 2, "net.pt");
      },
      ThrowsMessage<UserError>(HasSubstr("--loss mse needs 2x2, the shape of the target")));
  EXPECT_THAT(
      [&] {
        numbers.check_output(at::zeros({2, 2}, at::kLong), 2, "net.pt");
      },
      ThrowsMessage<UserError>(HasSubstr("needs floats")));
}

}  // namespace
}  // namespace capstan::training
