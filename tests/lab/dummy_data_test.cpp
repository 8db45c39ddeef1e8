#include "capstan/lab/dummy_data.h"

#include <set>

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Configuration values(std::int64_t bound, std::int64_t samples, std::int64_t length, std::int64_t sparsity) {
  return {"f: DummyData",
          {{"max_val", bound},
           {"sample_count", samples},
           {"sample_length", length},
           {"sparsity_percentage", sparsity}}};
}

std::vector<std::int64_t> numbers(const at::Tensor& tensor) {
  const auto flat = tensor.contiguous();
  return {flat.data_ptr<std::int64_t>(), flat.data_ptr<std::int64_t>() + flat.numel()};
}

Sample all(Data& data) {
  std::vector<std::uint32_t> indices;
  for (std::uint32_t i = 0; i < data.size(); ++i) indices.push_back(i);
  return data.batch(indices);
}

// 80 % of 1024 identifiers, rounded down, are used; a million draws hit each.
TEST(DummyData, UsesTheSharePromisedByTheSparsity) {
  const auto data = make_dummy_data(values(1024, 1024, 1024, 20), 1);
  const auto inputs = numbers(all(*data).input);
  const std::set<std::int64_t> used(inputs.begin(), inputs.end());
  EXPECT_EQ(data->size(), 1024);
  EXPECT_EQ(inputs.size(), 1024u * 1024u);
  EXPECT_EQ(used.size(), 819u);
  EXPECT_GE(*used.begin(), 0);
  EXPECT_LT(*used.rbegin(), 1024);
}

TEST(DummyData, TargetsCoverAllClasses) {
  const auto data = make_dummy_data(values(10, 1000, 1, 50), 1);
  const auto targets = numbers(all(*data).target);
  EXPECT_EQ(std::set<std::int64_t>(targets.begin(), targets.end()).size(), 10u);
}

TEST(DummyData, IsTheSameForTheSameSeedOnly) {
  const auto one = make_dummy_data(values(100, 50, 10, 20), 7),
             same = make_dummy_data(values(100, 50, 10, 20), 7),
             other = make_dummy_data(values(100, 50, 10, 20), 8);
  EXPECT_TRUE(at::equal(all(*one).input, all(*same).input));
  EXPECT_TRUE(at::equal(all(*one).target, all(*same).target));
  EXPECT_FALSE(at::equal(all(*one).input, all(*other).input));
}

TEST(DummyData, ABatchIsItsItemsStacked) {
  const auto data = make_dummy_data(values(100, 50, 10, 20), 7);
  const std::uint32_t indices[] = {3, 0, 41};
  const auto fast = data->batch(indices), stacked = data->Data::batch(indices);
  EXPECT_TRUE(at::equal(fast.input, stacked.input));
  EXPECT_TRUE(at::equal(fast.target, stacked.target));
  EXPECT_EQ(fast.input.sizes(), at::IntArrayRef({3, 10}));
}

TEST(DummyData, TakesTheOldNames) {
  const Configuration old("f", {{"max_val", std::int64_t{100}},
                                {"input_samples", std::int64_t{30}},
                                {"input_dim", std::int64_t{20}},
                                {"sparsity_percentage", std::int64_t{80}}});
  const auto data = make_dummy_data(old, 1);
  EXPECT_EQ(data->size(), 30);
  EXPECT_EQ(data->item(0).input.numel(), 20);
}

TEST(DummyData, WrongValuesAreOneLine) {
  const auto expect_error = [](const Configuration& bad, const std::string& what) {
    EXPECT_THAT([&] { make_dummy_data(bad, 1); }, ThrowsMessage<UserError>(HasSubstr(what)));
  };
  expect_error(values(100, 10, 10, 100), "sparsity_percentage is 100; it must be from 0 to 99");
  expect_error(values(5, 10, 10, 90), "leaves none of the 5 identifiers");
  expect_error(values(0, 10, 10, 20), "max_val is 0");
  expect_error(values(10, 1 << 20, 1 << 20, 20), "times sample_length is more than 4294967296");
}

}  // namespace
}  // namespace capstan::lab
