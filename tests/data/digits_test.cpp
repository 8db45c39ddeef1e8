#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capstan/data/dataset.h"
#include "capstan/data/readers.h"

namespace capstan::data {
namespace {

TEST(Digits, EveryFifthOf1797IsHeldOut) {
  const auto digits = load_digits();
  EXPECT_EQ(digits.train.count(), 1438u);
  EXPECT_EQ(digits.test.count(), 359u);
  EXPECT_EQ(digits.train.shape, (SampleShape{{1, 28, 28}, 10}));
  EXPECT_EQ(digits.test.shape, digits.train.shape);
  EXPECT_EQ(digits.train.pixels.size(), 1438u * 784);
  EXPECT_EQ(digits.test.pixels.size(), 359u * 784);
  std::vector<int> per_class(10);
  for (const auto label : digits.train.labels) ++per_class.at(static_cast<std::size_t>(label));
  for (const auto n : per_class) EXPECT_GT(n, 100);
}

// tests/reference/digits_scaled.json is PyTorch's bilinear interpolation, written by make_digits.py.
TEST(Digits, AreScaledAsPyTorchScales) {
  const auto digits = load_digits();
  std::ifstream file(CAPSTAN_SOURCE_DIR "/tests/reference/digits_scaled.json");
  const auto reference = nlohmann::json::parse(file);
  const auto expect_equal = [&](const Split& split, std::size_t place, const char* sample) {
    const auto& expected = reference.at(sample);
    EXPECT_EQ(split.labels[place], expected.at("label").get<std::int64_t>());
    const auto image = split.image(place);
    for (std::size_t p = 0; p < image.size(); ++p) {
      ASSERT_NEAR(image[p], expected.at("pixels").at(p).get<double>(), 0.501)
          << "pixel " << p << " of " << sample;
    }
  };
  expect_equal(digits.train, 0, "0");
  expect_equal(digits.train, 4, "5");
  expect_equal(digits.test, 1, "9");
}

TEST(Digits, TrainingPixelsHaveMeanZeroAndDeviationOne) {
  const auto digits = load({});
  double sum = 0, squares = 0;
  std::vector<float> image(digits.train->shape().elements());
  for (std::size_t i = 0; i < digits.train->count(); ++i) {
    digits.train->render(i, 0, image.data());
    for (const double x : image) sum += x, squares += x * x;
  }
  const auto n = static_cast<double>(digits.train->count() * image.size());
  EXPECT_NEAR(sum / n, 0, 1e-5);
  EXPECT_NEAR(squares / n, 1, 1e-5);
}

}  // namespace
}  // namespace capstan::data
