#include "capstan/base/row_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace capstan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Rows = std::vector<std::uint32_t>;

// At elements 0 to 15, 16 to 36, 48 to 88 and 96 to 103.
const FlatLayout kFour({{"d.emb", {5, 3}, true}, {"d.w", {20}}, {"g.emb", {4, 10}, true}, {"g.w", {7}}});
const GroupTable kPhases = {.phases = {{"d", {"d.*"}}, {"g", {"g.*"}}}};

TEST(RowGroups, HaveOneRowTensorEachBehindTheOthers) {
  const ParameterGroups one(kFour, {});
  EXPECT_THAT(one.names(), ElementsAre("default", "rows of d.emb", "rows of g.emb"));
  EXPECT_THAT(one.of_tensors(), ElementsAre(1, 0, 2, 0));
  EXPECT_FALSE(one[0].is_rows);
  EXPECT_TRUE(one[1].is_rows && one[2].is_rows);
  const ParameterGroups phases(kFour, kPhases);
  EXPECT_THAT(phases.names(),
              ElementsAre("phase g", "phase g, rows of g.emb", "phase d", "phase d, rows of d.emb"));
  const ParameterGroups optimizers(kFour, {.optimizers = {"g.*"}});
  EXPECT_THAT(optimizers.names(), ElementsAre("optimizer default", "optimizer default, rows of d.emb",
                                              "optimizer g.*", "optimizer g.*, rows of g.emb"));
  EXPECT_THAT(ParameterGroups(all_dense(kFour), {}).names(), ElementsAre("default"));
}

TEST(ShardRows, AreNoneWithoutRowTensors) {
  EXPECT_TRUE(ShardRows().empty());
  EXPECT_TRUE(ShardRows(all_dense(kFour), ParameterGroups(all_dense(kFour), {}), {0, 112}).empty());
  EXPECT_TRUE(ShardRows(kFour, ParameterGroups(kFour, {}), {16, 48}).empty()) << "a shard of d.w only";
}

TEST(ShardRows, OfAWholeModel) {
  const ParameterGroups groups(kFour, kPhases);
  const ShardRows rows(kFour, groups, {0, 112});
  ASSERT_EQ(rows.parts().size(), 2u);
  EXPECT_THAT(rows.of_phase(0), ElementsAre(0));
  EXPECT_THAT(rows.of_phase(1), ElementsAre(1));
  EXPECT_EQ(rows.of_group(0), nullptr);
  EXPECT_EQ(rows.of_group(1), &rows.parts()[1]);
  EXPECT_THAT(rows.dense(), ElementsAre(Range{16, 48}, Range{96, 112}));
  EXPECT_THAT(rows.dense(0), ElementsAre(Range{16, 48}));
  EXPECT_THAT(rows.dense(1), ElementsAre(Range{96, 112}));
  EXPECT_EQ(rows.parts()[1].elements(3), (Range{78, 88}));
  EXPECT_EQ(rows.parts()[1].size(), 40u);
}

// A shard of elements 55 to 84 has a part of g.emb's row 0, rows 1 and 2, and a part of row 3.
TEST(ShardRows, CutRows) {
  const ShardRows rows(kFour, ParameterGroups(kFour, {}), {55, 84});
  ASSERT_EQ(rows.parts().size(), 1u);
  const auto& part = rows.parts()[0];
  EXPECT_EQ(part.tensor, 2u);
  EXPECT_EQ(part.group, 2u);
  EXPECT_EQ(part.rows(), 4u);
  EXPECT_EQ(part.elements(0), (Range{0, 3}));
  EXPECT_EQ(part.elements(2), (Range{13, 23}));
  EXPECT_EQ(part.elements(3), (Range{23, 29}));
  EXPECT_EQ(part.size(), 29u);
  EXPECT_THAT(rows.dense(), IsEmpty());
}

TEST(RowPart, RefusesMalformedRows) {
  const auto part = ShardRows(kFour, ParameterGroups(kFour, {}), {58, 78}).parts()[0];  // rows 1 and 2
  const auto says = [&](const Rows& rows) { return part.check(rows).message(); };
  EXPECT_EQ(says({}), "");
  EXPECT_EQ(says({1, 2}), "");
  EXPECT_EQ(says({0, 1}), "row 0 of a tensor whose rows 1 to 2 are here");
  EXPECT_EQ(says({1, 3}), "row 3 of a tensor whose rows 1 to 2 are here");
  EXPECT_EQ(says({4294967295}), "row 4294967295 of a tensor whose rows 1 to 2 are here");
  EXPECT_EQ(says({2, 1}), "row 1 behind row 2");
  EXPECT_EQ(says({1, 1}), "row 1 behind row 1");
}

// Every element of a row is in exactly one of the shards, and sizes are those of the elements.
RC_GTEST_PROP(RowPartProperty, ShardsHaveEveryElementOfARowOnce, ()) {
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 30), columns = *rc::gen::inRange<std::int64_t>(1, 40);
  const FlatLayout layout(
      {{"a", {*rc::gen::inRange<std::int64_t>(1, 40)}}, {"emb", {rows, columns}, true}, {"b", {3}}});
  const ParameterGroups groups(layout, {});
  std::vector<std::uint64_t> cuts = {0, layout.size()};
  const auto count = *rc::gen::inRange(0, 4);
  for (int i = 0; i < count; ++i) cuts.push_back(*rc::gen::inRange<std::uint64_t>(0, layout.size()));
  std::ranges::sort(cuts);
  Rows some;
  for (std::uint32_t r = 0; r < rows; ++r)
    if (*rc::gen::inRange(0, 2) == 0) some.push_back(r);
  std::vector<int> seen(layout.size());
  std::uint64_t dense = 0;
  for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
    const Range shard{cuts[s], cuts[s + 1]};
    const ShardRows here(layout, groups, shard);
    if (here.empty()) continue;
    const auto& part = here.parts()[0];
    const auto mine = part.within(some);
    RC_ASSERT(part.check(mine).is_ok());
    std::uint64_t size = 0;
    for (const auto row : mine) {
      const auto range = part.elements(row);
      size += range.size();
      for (auto i = range.begin; i < range.end; ++i) ++seen[shard.begin + i];
    }
    RC_ASSERT(part.size(mine) == size);
    for (const auto& range : here.dense())
      for (auto i = range.begin; i < range.end; ++i) dense += ++seen[shard.begin + i] > 1;
  }
  RC_ASSERT(dense == 0u);
  for (const auto row : some)
    for (std::int64_t c = 0; c < columns; ++c)
      RC_ASSERT(seen[layout.offset(1) + row * static_cast<std::uint64_t>(columns) +
                     static_cast<std::uint64_t>(c)] == 1);
}

}  // namespace
}  // namespace capstan
