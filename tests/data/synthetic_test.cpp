#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/data/dataset.h"
#include "capstan/data/readers.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// The fraction of test images whose nearest class mean of the training images is that of their class.
double nearest_mean_accuracy(const Splits& dataset) {
  const auto size = dataset.train.shape.elements();
  const auto classes = static_cast<std::size_t>(dataset.train.shape.classes);
  std::vector<double> means(classes * size), counts(classes);
  for (std::size_t i = 0; i < dataset.train.count(); ++i) {
    const auto label = static_cast<std::size_t>(dataset.train.labels[i]);
    counts[label] += 1;
    for (std::size_t p = 0; p < size; ++p) means[label * size + p] += dataset.train.image(i)[p];
  }
  double right = 0;
  for (std::size_t i = 0; i < dataset.test.count(); ++i) {
    double best = std::numeric_limits<double>::max();
    std::size_t best_label = 0;
    for (std::size_t k = 0; k < classes; ++k) {
      double distance = 0;
      for (std::size_t p = 0; p < size; ++p) {
        const double d = dataset.test.image(i)[p] - means[k * size + p] / counts[k];
        distance += d * d;
      }
      if (distance < best) best = distance, best_label = k;
    }
    right += static_cast<std::size_t>(dataset.test.labels[i]) == best_label;
  }
  return right / static_cast<double>(dataset.test.count());
}

TEST(Synthetic, HasTheRequestedShape) {
  const auto d = make_synthetic("synthetic:3x8x12:7", 1);
  EXPECT_EQ(d.train.shape, (SampleShape{{3, 8, 12}, 7}));
  EXPECT_EQ(d.train.count(), 2048u);
  EXPECT_EQ(d.test.count(), 512u);
  EXPECT_EQ(d.train.pixels.size(), 2048u * 3 * 8 * 12);
  const auto small = make_synthetic("synthetic:1x28x28:10:100", 1);
  EXPECT_EQ(small.train.count(), 100u);
  EXPECT_EQ(small.test.count(), 25u);
  EXPECT_EQ(make_synthetic("synthetic:1x1x1:1:1", 1).test.count(), 1u);
}

TEST(Synthetic, CanBeLearned) {
  for (const auto* name : {"synthetic:1x28x28:10", "synthetic:3x32x32:10:500", "synthetic:1x8x8:4:200"}) {
    EXPECT_GT(nearest_mean_accuracy(make_synthetic(name, 1)), 0.95) << name;
  }
}

TEST(Synthetic, DependsOnTheSeed) {
  const auto a = make_synthetic("synthetic:1x28x28:10:64", 7);
  const auto b = make_synthetic("synthetic:1x28x28:10:64", 7);
  const auto c = make_synthetic("synthetic:1x28x28:10:64", 8);
  EXPECT_EQ(a.train.pixels, b.train.pixels);
  EXPECT_EQ(a.test.pixels, b.test.pixels);
  EXPECT_NE(a.train.pixels, c.train.pixels);
  EXPECT_NE(std::vector(a.train.pixels.begin(), a.train.pixels.begin() + 784),
            std::vector(a.test.pixels.begin(), a.test.pixels.begin() + 784));
}

TEST(Synthetic, IsNormalised) {
  const auto d = make_synthetic("synthetic:1x28x28:1000:3000", 1);
  double sum = 0, squares = 0;
  const auto statistics = synthetic_statistics();
  for (const auto p : d.train.pixels) {
    const double x = (p / 255.0 - statistics.mean[0]) / statistics.deviation[0];
    sum += x, squares += x * x;
  }
  const auto n = static_cast<double>(d.train.pixels.size());
  EXPECT_NEAR(sum / n, 0, 0.05);
  EXPECT_NEAR(squares / n, 1, 0.05);
}

TEST(Synthetic, AWrongSpellingIsAnErrorWithTheRightForm) {
  for (const auto* name :
       {"synthetic", "synthetic:", "synthetic:1x28x28", "synthetic:1x28x28:", "synthetic:28x28:10",
        "synthetic:1x28x28x3:10", "synthetic:0x28x28:10", "synthetic:1x-28x28:10", "synthetic:1x28x28:0",
        "synthetic:1x28x28:10:", "synthetic:1x28x28:10:0", "synthetic:1x28x28:10:5:5",
        "synthetic:1x28x28:ten", "synthetic:1x28x28:10 ", "synthetic:1x99999x28:10",
        "synthetic:1x28x28:10:99999999999999999999"}) {
    EXPECT_THAT(
        [&] {
          load({name, "", 1});
        },
        ThrowsMessage<UserError>(HasSubstr("synthetic:CxHxW:classes")))
        << name;
  }
}

TEST(Synthetic, RefusesMoreThanMemoryCanHold) {
  EXPECT_THAT(
      [] {
        load({"synthetic:64x4096x4096:100000:1000000000", "", 1});
      },
      ThrowsMessage<UserError>(HasSubstr("fewer samples")));
}

}  // namespace
}  // namespace capstan::data
