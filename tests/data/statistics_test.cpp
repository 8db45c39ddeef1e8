#include "capstan/data/statistics.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/data/dataset.h"
#include "capstan/data/in_memory.h"
#include "capstan/user_error.h"

#include "data/rendered.h"

namespace capstan::data {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// By hand: 1, 3, 5, 7 have mean 4 and variance 5.
TEST(Statistics, AreMeanAndPopulationDeviationOfEachElement) {
  const std::vector<float> values = {1, 10, 3, 10, 5, 10, 7, 10};
  const auto s = measure(values, 2);
  EXPECT_DOUBLE_EQ(s.mean[0], 4);
  EXPECT_DOUBLE_EQ(s.deviation[0], std::sqrt(5.0));
  EXPECT_EQ(s.mean[1], 10);
  EXPECT_EQ(s.deviation[1], 1) << "a constant is only centred";
}

TEST(Statistics, OfLevelsCountThemAsShareOf255) {
  const std::vector<std::uint8_t> levels = {0, 51, 255, 51};
  const auto s = measure(levels, 2);
  EXPECT_DOUBLE_EQ(s.mean[0], 0.5);
  EXPECT_DOUBLE_EQ(s.deviation[0], 0.5);
  EXPECT_DOUBLE_EQ(s.mean[1], 0.2);
  EXPECT_EQ(s.deviation[1], 1);
}

TEST(Statistics, AConstantBecomesExactlyZero) {
  std::vector<float> values(1001, 0.1f);
  normalise(measure(values, 1), values);
  EXPECT_THAT(values, ::testing::Each(0.0f));
}

// The sum of these has rounding errors, which must not count as a deviation.
TEST(Statistics, AConstantOfDoublesBecomesExactlyZero) {
  const std::vector<double> values(1001, 0.1);
  EXPECT_THAT(normalised(measure(values, 1), values), ::testing::Each(0.0f));
}

// 1, 3, 5, 7 have mean 4 and variance 5.
TEST(Statistics, OfHugeValuesAreExact) {
  const std::vector<double> near = {1e15 + 1, 1e15 + 3, 1e15 + 5, 1e15 + 7};
  EXPECT_EQ(measure(near, 1).mean[0], 1e15 + 4);
  EXPECT_DOUBLE_EQ(measure(near, 1).deviation[0], std::sqrt(5.0));
  const std::vector<float> far = {3e38f, -3e38f, 3e38f, -3e38f};
  EXPECT_EQ(measure(far, 1).mean[0], 0);
  EXPECT_EQ(measure(far, 1).deviation[0], static_cast<double>(3e38f));
}

TEST(Statistics, NormaliseEachElement) {
  std::vector<float> values = {1, 2, 3, 4};
  normalise({{1, 2}, {2, 4}}, values);
  EXPECT_EQ(values, (std::vector<float>{0, 0, 1, 0.5f}));
}

TEST(Statistics, OptionsAreRefusedByName) {
  EXPECT_EQ(parse_normalize("train"), Normalize::kTrain);
  EXPECT_THAT([] { parse_normalize("all"); },
              ThrowsMessage<UserError>("--normalize all: must be auto, none or train"));
}

std::vector<float> first_test_sample(const DatasetOptions& options) {
  return capstan::testing::rendered(*load(options).test, 0);
}

// Raw levels and statistics of the whole training part, computed here, give the normalised floats.
TEST(Normalize, OfADatasetInMemoryFollowsTheOption) {
  for (const auto* name : {"digits", "synthetic:3x5x4:2:40"}) {
    DatasetOptions options{name, "", 1};
    options.normalize = Normalize::kNone;
    const auto raw = load(options);
    const auto channels = static_cast<std::size_t>(raw.test->shape().channels());
    std::vector<double> sum(channels), squares(channels);
    std::vector<float> image(raw.test->shape().elements());
    for (std::size_t i = 0; i < raw.train->count(); ++i) {
      raw.train->render(i, 0, image.data());
      for (std::size_t p = 0; p < image.size(); ++p) {
        const auto x = static_cast<double>(image[p]);
        EXPECT_EQ(image[p], static_cast<float>(std::lround(x * 255) / 255.0));
        sum[p % channels] += x;
        squares[p % channels] += x * x;
      }
    }
    const auto n = static_cast<double>(raw.train->count() * image.size() / channels);
    const auto levels = first_test_sample(options);
    options.normalize = Normalize::kTrain;
    const auto normalised = first_test_sample(options);
    for (std::size_t p = 0; p < levels.size(); ++p) {
      const auto mean = sum[p % channels] / n;
      const auto deviation = std::sqrt(squares[p % channels] / n - mean * mean);
      ASSERT_NEAR(normalised[p], (static_cast<double>(levels[p]) - mean) / deviation, 1e-4);
    }
  }
}

TEST(Normalize, TheTestPartIsTheSameWithTheEncodingAlone) {
  DatasetOptions options{"synthetic:3x5x4:2:40", "", 1};
  options.normalize = Normalize::kTrain;
  const auto whole = load(options);
  const auto expected = first_test_sample(options);
  options.test_only = true;
  EXPECT_EQ(first_test_sample(options), expected) << "measured again";
  options.encoding = Encoding::parse(whole.encoding.to_json(), "dataset.json");
  EXPECT_EQ(*options.encoding, whole.encoding);
  EXPECT_FALSE(needs_train(options, {}));
  EXPECT_EQ(first_test_sample(options), expected);
  options.encoding->statistics = {{0.5, 0.5, 0.5}, {1, 1, 1}};
  EXPECT_NE(first_test_sample(options), expected);
  options.encoding->statistics = {{0.5}, {1}};
  EXPECT_THAT([&] { load(options); }, ThrowsMessage<UserError>(HasSubstr(
                                          "has 3 channels per sample, but the run that describes it was "
                                          "trained with 1")));
}

TEST(Encoding, IsReadAsItIsWritten) {
  Encoding e;
  e.columns = {{"age", {}}, {"town \"x\"", {"Aachen", "Köln"}}};
  e.targets = {"price"};
  e.classes = 2;
  e.class_names = {"no", "yes"};
  e.statistics = {{0.1, 1.0 / 3, 1e-300}, {1, 2.5e10, 0.1}};
  EXPECT_EQ(Encoding::parse(e.to_json(), "f"), e);
  EXPECT_EQ(Encoding::parse(Encoding().to_json(), "f"), Encoding());
  e.class_names.push_back("more than classes");
  for (const auto& bad : {std::string(), std::string("[]"), std::string("{\"mean\":[1]}"), e.to_json()}) {
    EXPECT_THAT([&] { Encoding::parse(bad, "run/dataset.json"); },
                ThrowsMessage<UserError>(
                    "run/dataset.json: is not the description of a dataset that capstan train writes"));
  }
}

}  // namespace
}  // namespace capstan::data
