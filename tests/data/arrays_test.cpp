#include "capstan/data/arrays.h"

#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

#include "data/rendered.h"
#include "data/written_arrays.h"

namespace capstan::data {
namespace {

using namespace capstan::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class Arrays : public ::testing::Test {
 protected:
  DatasetOptions options(const std::string& rest) const {
    DatasetOptions o{"arrays:" + rest, folder_.path().string(), 1};
    o.normalize = Normalize::kNone;
    return o;
  }
  Dataset load(const std::string& rest) const { return data::load(options(rest)); }
  void expect_error(const std::string& rest, const std::string& message) const {
    EXPECT_THAT([&] { load(rest); }, ThrowsMessage<UserError>(HasSubstr(message)));
  }
  // Ten samples of 1x2x2, sample i is 4·i … 4·i + 3, with the class i mod 3.
  void write_levels(const std::string& name) const {
    std::vector<std::uint8_t> levels(40);
    std::iota(levels.begin(), levels.end(), std::uint8_t{0});
    std::vector<std::int64_t> labels;
    for (int i = 0; i < 10; ++i) labels.push_back(i % 3);
    write_tensors(folder_ / name, {{"y", "I64", {10}, bytes_of_values(labels)},
                                   {"x", "U8", {10, 1, 2, 2}, bytes_of_values(levels)}});
  }

  const TemporaryFolder folder_;
};

TEST_F(Arrays, HoldOutEveryFifthSample) {
  write_levels("a.safetensors");
  const auto dataset = load("a.safetensors");
  EXPECT_EQ(dataset.train->shape(), (SampleShape{{1, 2, 2}, 3}));
  EXPECT_EQ(dataset.test->shape(), dataset.train->shape());
  EXPECT_EQ(dataset.train->count(), 8u);
  EXPECT_EQ(dataset.test->count(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto sample = static_cast<int>(5 * i + 4);
    EXPECT_EQ(dataset.test->label(i), sample % 3);
    for (int p = 0; p < 4; ++p)
      EXPECT_EQ(rendered(*dataset.test, i)[static_cast<std::size_t>(p)],
                static_cast<float>((4 * sample + p) / 255.0));
  }
  EXPECT_EQ(dataset.train->label(4), 5 % 3) << "sample 4 is held out";
}

TEST_F(Arrays, ImagesAreReorderedToChannelsLast) {
  std::vector<float> values(5 * 2 * 1 * 3);
  std::iota(values.begin(), values.end(), 0.0f);
  write_npy(folder_ / "x.npy", "<f4", {5, 2, 1, 3}, values);
  write_npy(folder_ / "y.npy", "<i4", {5}, std::vector<std::int32_t>{0, 1, 0, 7, 1});
  const auto dataset = load("x.npy:target=y.npy");
  EXPECT_EQ(dataset.train->shape(), (SampleShape{{2, 1, 3}, 8})) << "0 to the largest class";
  EXPECT_THAT(rendered(*dataset.train, 1), ElementsAre(6, 9, 7, 10, 8, 11));
  // 6 numbers as one image of two rows.
  EXPECT_THAT(rendered(*load("x.npy:target=y.npy:shape=1x2x3").train, 1), ElementsAre(6, 7, 8, 9, 10, 11));
}

TEST_F(Arrays, OtherInputsAreRowMajorWithTargetsOfNumbers) {
  std::vector<double> values(6 * 2 * 3);
  std::iota(values.begin(), values.end(), 0.5);
  write_npy(folder_ / "x.npy", "<f8", {6, 2, 3}, values);
  write_npy(folder_ / "y.npy", "<f4", {6}, std::vector<float>{1, 2, 3, 4, 5, 6});
  write_npy(folder_ / "y2.npy", "<f4", {6, 2}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  write_npy(folder_ / "k.npy", "<i2", {6}, std::vector<std::int16_t>{-1, 2, 3, 4, 5, 6});
  const auto dataset = load("x.npy:target=y.npy");
  EXPECT_EQ(dataset.train->shape(), (SampleShape{{2, 3}, 0, {1}}));
  EXPECT_THAT(rendered(*dataset.train, 1), ElementsAre(6.5f, 7.5f, 8.5f, 9.5f, 10.5f, 11.5f));
  EXPECT_THAT(target(*dataset.test, 0), ElementsAre(5));
  EXPECT_THAT(target(*load("x.npy:target=y2.npy").test, 0), ElementsAre(9, 10));
  EXPECT_THAT(target(*load("x.npy:target=k.npy:numbers").train, 0), ElementsAre(-1));
  expect_error("x.npy:target=k.npy", "k.npy: the class at [0] is -1; classes are 0 to 1048575");
}

TEST_F(Arrays, ATestFileReplacesTheHeldOutPart) {
  write_levels("a.safetensors");
  write_tensors(folder_ / "b.safetensors",
                {{"y", "U8", {1}, "\x05"}, {"x", "U8", {1, 1, 2, 2}, std::string("\x01\x02\x03\xff", 4)}});
  const auto dataset = load("a.safetensors:test=b.safetensors");
  EXPECT_EQ(dataset.train->count(), 10u);
  EXPECT_EQ(dataset.test->count(), 1u);
  EXPECT_EQ(dataset.train->shape().classes, 6) << "over both parts";
  EXPECT_EQ(rendered(*dataset.test, 0)[3], 1.0f);
  auto test_only = options("missing.safetensors:test=b.safetensors");
  test_only.test_only = true;
  test_only.encoding = dataset.encoding;
  const auto test = data::load(test_only);
  EXPECT_FALSE(test.train);
  EXPECT_EQ(test.test->shape(), dataset.test->shape());
  write_npy(folder_ / "x.npy", "<f4", {1, 2}, std::vector<float>{1, 2});
  write_npy(folder_ / "y.npy", "<f4", {1}, std::vector<float>{1});
  EXPECT_EQ(load("x.npy:target=y.npy:test=x.npy,y.npy").test->count(), 1u);
  expect_error("x.npy:target=y.npy:test=x.npy", "give both as :test=INPUT.npy,TARGET.npy");
  expect_error("a.safetensors:test=x.npy,y.npy", "x.npy: its samples are 2, those for training 1x2x2");
}

// 1, 3, 5, 7 have mean 4 and variance 5; the second column is constant; sample 4 is held out.
TEST_F(Arrays, AreNormalisedByTheTrainingPart) {
  write_npy(folder_ / "x.npy", "<f4", {5, 2}, std::vector<float>{1, 9, 3, 9, 5, 9, 7, 9, 100, 10});
  write_npy(folder_ / "y.npy", "<i8", {5}, std::vector<std::int64_t>{0, 1, 0, 1, 0});
  for (const auto normalize : {Normalize::kAuto, Normalize::kTrain}) {
    auto o = options("x.npy:target=y.npy");
    o.normalize = normalize;
    const auto dataset = data::load(o);
    EXPECT_THAT(rendered(*dataset.train, 0), ElementsAre(static_cast<float>(-3 / std::sqrt(5.0)), 0));
    EXPECT_THAT(rendered(*dataset.test, 0), ElementsAre(static_cast<float>(96 / std::sqrt(5.0)), 1));
    o.encoding = dataset.encoding;
    o.test_only = true;
    EXPECT_EQ(rendered(*data::load(o).test, 0), rendered(*dataset.test, 0));
  }
}

// Numbers that differ by less than floats can show: `large` plus 1, 3, 5, 7 (mean 4, variance 5) steps, and
// 101 held out.
template <class T>
void expect_kept_apart(const std::filesystem::path& folder, const std::string& descr, T large, T step) {
  std::vector<T> values;
  for (const int k : {1, 3, 5, 7, 101}) values.push_back(static_cast<T>(large + static_cast<T>(k) * step));
  write_npy(folder / "x.npy", descr, {5}, values);
  write_npy(folder / "y.npy", "|u1", {5}, std::vector<std::uint8_t>(5));
  DatasetOptions o{"arrays:x.npy:target=y.npy", folder.string(), 1};
  const auto dataset = data::load(o);
  const auto expected = [](double k) { return static_cast<float>((k - 4) / std::sqrt(5.0)); };
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_FLOAT_EQ(rendered(*dataset.train, i)[0], expected(1.0 + 2.0 * static_cast<double>(i))) << descr;
  EXPECT_FLOAT_EQ(rendered(*dataset.test, 0)[0], expected(101)) << descr;
  o.normalize = Normalize::kNone;
  EXPECT_EQ(rendered(*data::load(o).test, 0)[0], static_cast<float>(values[4])) << descr;
}

TEST_F(Arrays, LargeNumbersAreNormalisedBeforeTheyAreRounded) {
  expect_kept_apart<double>(folder_.path(), "<f8", 1.7e9, 0.25);
  expect_kept_apart<std::int32_t>(folder_.path(), "<i4", -1'700'000'000, 1);
  expect_kept_apart<std::uint32_t>(folder_.path(), "<u4", 4'200'000'000u, 1);
  expect_kept_apart<std::int64_t>(folder_.path(), "<i8", 1'700'000'000'000, 1);
  expect_kept_apart<std::uint64_t>(folder_.path(), "<u8", std::uint64_t{1} << 63, 4096);
}

// Channel 0 is 1e9 + 1, 3, 5, 7 (mean 4, variance 5), channel 1 is constant.
TEST_F(Arrays, LargeNumbersOfImagesAreNormalisedByChannel) {
  std::vector<double> values;
  for (const double k : {1, 5, 1, 5, 101}) values.insert(values.end(), {1e9 + k, 1e9 + k + 2, 0.1, 0.1});
  write_npy(folder_ / "x.npy", "<f8", {5, 2, 1, 2}, values);
  write_npy(folder_ / "y.npy", "|u1", {5}, std::vector<std::uint8_t>(5));
  auto o = options("x.npy:target=y.npy");
  o.normalize = Normalize::kAuto;
  const auto dataset = data::load(o);
  const auto n = [](double k) { return static_cast<float>((k - 4) / std::sqrt(5.0)); };
  EXPECT_THAT(rendered(*dataset.train, 0), ElementsAre(n(1), 0, n(3), 0));
  EXPECT_THAT(rendered(*dataset.test, 0), ElementsAre(n(101), 0, n(103), 0));
}

TEST_F(Arrays, ANumberTooLargeToBeNormalisedIsAnError) {
  write_npy(folder_ / "x.npy", "<f4", {5}, std::vector<float>{1e-40f, 2e-40f, 1e-40f, 2e-40f, 1});
  write_npy(folder_ / "y.npy", "|u1", {5}, std::vector<std::uint8_t>(5));
  auto o = options("x.npy:target=y.npy");
  EXPECT_NO_THROW(data::load(o));
  o.normalize = Normalize::kAuto;
  EXPECT_THAT(
      [&] { data::load(o); },
      ThrowsMessage<UserError>("arrays:x.npy:target=y.npy: number 0 of sample 0 of the test part is too "
                               "large to be normalised (the standard deviation is 5e-41): correct it, or "
                               "give --normalize none"));
}

TEST_F(Arrays, NamesAreFoundOrAskedFor) {
  const auto x = bytes_of_values(std::vector<float>(10, 0.5f)), y = std::string(10, '\x01');
  const auto write = [&](const std::string& a, const std::string& b) {
    write_tensors(folder_ / "a.safetensors", {{a, "F32", {10}, x}, {b, "U8", {10}, y}});
  };
  for (const auto& [a, b] : {std::pair{"inputs", "targets"}, {"images", "labels"}, {"data", "target"}}) {
    write(a, b);
    EXPECT_EQ(load("a.safetensors").train->shape(), (SampleShape{{1}, 2})) << a;
  }
  write("a", "b");
  expect_error("a.safetensors",
               "a.safetensors: no array is named x, inputs, images, data for the input; it has a, b: "
               "give :input=NAME");
  expect_error("a.safetensors:input=a", "for the target; it has a, b: give :target=NAME");
  expect_error("a.safetensors:input=c:target=b", "no array is named c for the input");
  EXPECT_EQ(load("a.safetensors:input=a:target=b").test->count(), 2u);
  write("x", "data");
  expect_error("a.safetensors:target=data", "several arrays are named x, inputs, images, data for the input");
}

TEST_F(Arrays, BadArraysAreErrorsOfOneLine) {
  const auto inf = INFINITY;
  write_npy(folder_ / "y.npy", "|u1", {6}, std::vector<std::uint8_t>(6));
  write_npy(folder_ / "nan.npy", "<f4", {6, 2}, std::vector<float>{0, 1, 2, 3, 4, NAN, 6, 7, 8, 9, 10, inf});
  expect_error("nan.npy:target=y.npy", "nan.npy: the value at [2, 1] is nan, not a finite 32-bit float");
  write_npy(folder_ / "big.npy", "<f8", {6}, std::vector<double>{0, 1e300, 0, 0, 0, 0});
  expect_error("big.npy:target=y.npy", "big.npy: the value at [1] is inf, not a finite 32-bit float");
  auto big = options("big.npy:target=y.npy");
  big.normalize = Normalize::kTrain;
  EXPECT_THAT([&] { data::load(big); },
              ThrowsMessage<UserError>(HasSubstr("the value at [1] is 1e+300, not a finite 32-bit float")));
  write_npy(folder_ / "short.npy", "<f4", {5}, std::vector<float>(5));
  expect_error("short.npy:target=y.npy", "short.npy: 5 inputs but 6 targets");
  write_npy(folder_ / "none.npy", "<f4", {0, 4}, std::vector<float>());
  expect_error("none.npy:target=y.npy", "none.npy: is empty (its shape is 0x4)");
  write_npy(folder_ / "four.npy", "<f4", {4}, std::vector<float>(4));
  write_npy(folder_ / "y4.npy", "|u1", {4}, std::vector<std::uint8_t>(4));
  expect_error("four.npy:target=y4.npy",
               "four.npy has 4 samples; every fifth is for testing, so it needs at least 5");
  write_npy(folder_ / "x.npy", "<f4", {6, 5}, std::vector<float>(30));
  expect_error("x.npy:target=y.npy:shape=1x2x3", "x.npy: a sample has 5 numbers, but shape=1x2x3 has 6");
  expect_error("x.npy:target=y.npy:shape=2x3",
               "shape=2x3: must be CxHxW, such as 1x28x28; the form is arrays:FILE");
  expect_error("x.npy", "a .npy file has one array: give the other as :target=FILE.npy");
  expect_error("x.npy:tarjet=y.npy", "it has no option 'tarjet' (did you mean target?); the form is");
  expect_error("x.npy:target", "option 'target' needs a value");
  expect_error("x.npy:target=y.npy:numbers=3", "option 'numbers' takes no value");
  expect_error("x.npy:target=y.npy:target=y.npy", "option 'target' is given twice");
  expect_error("", "it names no file");
  expect_error("no.npz", "no.npz: No such file or directory");
  auto o = options("x.npy:target=y.npy");
  o.augment = Augment::kCropFlip;
  EXPECT_THAT([&] { data::load(o); },
              ThrowsMessage<UserError>(
                  "--augment crop-flip is for images; arrays:x.npy:target=y.npy has 5 numbers per sample"));
  o.augment = Augment::kAuto;
  o.image_size = 28;
  EXPECT_THAT([&] { data::load(o); }, ThrowsMessage<UserError>(HasSubstr("are not images")));
}

}  // namespace
}  // namespace capstan::data
