#include "capstan/base/row_payload.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace capstan {
namespace {

using ::testing::ElementsAre;
using Rows = std::vector<std::uint32_t>;

float as_float(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// A shard of elements 20 to 122: the end of w, and rows 0 to 5 of emb, of which the last is cut.
// columns.
const FlatLayout kLayout({{"w", {50}}, {"emb", {8, 10}, true}});
const ParameterGroups kGroups(kLayout, {});
const ShardRows kRows(kLayout, kGroups, {20, 122});

class Payload : public ::testing::Test {
 protected:
  const RowPayload with_values_{kRows.dense(), parts_of(kRows), true};
  const RowPayload numbers_{kRows.dense(), parts_of(kRows), false};
  std::vector<float> shard_ = std::vector<float>(102);
  void SetUp() override {
    for (std::size_t i = 0; i < shard_.size(); ++i) shard_[i] = static_cast<float>(i);
  }
};

// w's elements in the shard are 0 to 30, with the gap to 44; emb begins at 44, and its row 5 has 8 elements.
TEST_F(Payload, HasDenseElementsThenNumbersThenValues) {
  const Rows rows = {1, 5};
  const std::span<const std::uint32_t> lists[] = {rows};
  ASSERT_EQ(with_values_.size(lists), 44u + 2 + 10 + 8);
  std::vector<float> out(64);
  with_values_.pack(lists, shard_.data(), out);
  for (std::size_t i = 0; i < 44; ++i) EXPECT_EQ(out[i], static_cast<float>(i));
  EXPECT_EQ(std::memcmp(&out[44], rows.data(), 8), 0);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(out[46 + i], static_cast<float>(54 + i));
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(out[56 + i], static_cast<float>(94 + i));

  std::vector<float> copy(102, -1);
  const auto read = with_values_.unpack(Rows{2}, out, copy.data());
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_THAT(*read, ElementsAre(rows));
  for (std::size_t i = 0; i < copy.size(); ++i) {
    const bool sent = i < 44 || (i >= 54 && i < 64) || i >= 94;
    EXPECT_EQ(copy[i], sent ? static_cast<float>(i) : -1) << i;
  }
}

TEST_F(Payload, HasOnlyNumbersIfMemoryIsShared) {
  const Rows rows = {0, 3, 5};
  const std::span<const std::uint32_t> lists[] = {rows};
  ASSERT_EQ(numbers_.size(lists), 3u);
  std::vector<float> out(3);
  numbers_.pack(lists, nullptr, out);
  const auto read = numbers_.unpack(Rows{3}, out, nullptr);
  ASSERT_TRUE(read);
  EXPECT_THAT(*read, ElementsAre(rows));
}

TEST_F(Payload, ThatIsMalformedChangesNothing) {
  const auto says = [&](std::uint32_t count, std::vector<float> payload) {
    std::vector<float> to(102, -1);
    const auto read = with_values_.unpack(Rows{count}, payload, to.data());
    EXPECT_EQ(to, std::vector<float>(102, -1));
    return read.status().message();
  };
  const auto of = [](const Rows& rows, std::size_t values) {
    std::vector<float> payload(44, 1);
    for (const auto row : rows) payload.push_back(as_float(row));
    payload.resize(payload.size() + values, 1);
    return payload;
  };
  EXPECT_EQ(says(1, of({6}, 10)), "row 6 of a tensor whose rows 0 to 5 are here");
  EXPECT_EQ(says(2, of({3, 2}, 20)), "row 2 behind row 3");
  EXPECT_EQ(says(1, of({5}, 10)), "40 bytes of values for rows that have 32");
  EXPECT_EQ(says(1, of({4}, 9)), "36 bytes of values for rows that have 40");
  EXPECT_EQ(says(1, of({}, 0)), "rows with a payload of 176 bytes");
  EXPECT_EQ(says(1, of({4}, 11)), "rows with a payload of 224 bytes");
}

}  // namespace
}  // namespace capstan
