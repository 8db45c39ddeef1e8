#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "capstan/base/parameter_groups.h"

namespace capstan {
namespace {

using Ranges = std::vector<Range>;

// Tensors of 20, 16, 16 and 5 elements begin at 0, 32, 48 and 64; the whole has 80.
const FlatLayout kFour({{"a", {20}}, {"b", {16}}, {"c", {4, 4}}, {"d", {5}}});

TEST(GroupRanges, AreTheTensorsWithTheGapsBehindThem) {
  EXPECT_EQ(group_ranges(kFour, std::vector<std::uint32_t>{0, 0, 0, 0}, 1, {0, 80}),
            (std::vector<Ranges>{{{0, 80}}}));
  EXPECT_EQ(group_ranges(kFour, std::vector<std::uint32_t>{1, 0, 0, 1}, 2, {0, 80}),
            (std::vector<Ranges>{{{32, 64}}, {{0, 32}, {64, 80}}}));
  EXPECT_EQ(group_ranges(kFour, std::vector<std::uint32_t>{0, 1, 1, 2}, 3, {0, 80}),
            (std::vector<Ranges>{{{0, 32}}, {{32, 64}}, {{64, 80}}}))
      << "adjacent ranges of one group are merged";
}

TEST(GroupRanges, AreRelativeToTheShardAndMayBeEmpty) {
  const std::vector<std::uint32_t> of = {1, 0, 0, 1};
  EXPECT_EQ(group_ranges(kFour, of, 2, {10, 66}), (std::vector<Ranges>{{{22, 54}}, {{0, 22}, {54, 56}}}));
  EXPECT_EQ(group_ranges(kFour, of, 2, {32, 64}), (std::vector<Ranges>{{{0, 32}}, {}}));
  EXPECT_EQ(group_ranges(kFour, of, 2, {80, 80}), (std::vector<Ranges>{{}, {}}));
}

// The phases of kFour, in this order, by the names of their tensors.
std::vector<Range> pushed(const std::vector<std::vector<std::string>>& phases, Range shard) {
  GroupTable table;
  for (const auto& globs : phases) table.phases.push_back({std::to_string(table.phases.size()), globs});
  return push_ranges(kFour, ParameterGroups(kFour, table), shard);
}

TEST(PushRanges, OfOnePhaseAreTheShard) {
  EXPECT_EQ(pushed({}, {0, 80}), (Ranges{{0, 80}}));
  EXPECT_EQ(pushed({{"a", "b", "c", "d"}}, {10, 66}), (Ranges{{0, 56}}));
  EXPECT_EQ(pushed({}, {80, 80}), (Ranges{{0, 0}}));
}

TEST(PushRanges, SpanTheTensorsOfThePhase) {
  EXPECT_EQ(pushed({{"a", "b"}, {"c", "d"}}, {0, 80}), (Ranges{{0, 48}, {48, 80}}));
  EXPECT_EQ(pushed({{"c", "d"}, {"a", "b"}}, {0, 80}), (Ranges{{48, 80}, {0, 48}}));
  EXPECT_EQ(pushed({{"a", "c"}, {"b", "d"}}, {0, 80}), (Ranges{{0, 64}, {32, 80}})) << "interleaved";
  EXPECT_EQ(pushed({{"a", "d"}, {"b", "c"}}, {0, 80}), (Ranges{{0, 80}, {32, 64}}));
}

TEST(PushRanges, AreRelativeToTheShardAndMayBeEmpty) {
  EXPECT_EQ(pushed({{"a", "c"}, {"b", "d"}}, {40, 66}), (Ranges{{8, 24}, {0, 26}}));
  EXPECT_EQ(pushed({{"a", "b"}, {"c", "d"}}, {48, 66}), (Ranges{{0, 0}, {0, 18}}));
  EXPECT_EQ(pushed({{"a", "b"}, {"c", "d"}}, {0, 48}), (Ranges{{0, 48}, {0, 0}}));
}

// Strategies and optimizers divide the tensors further, and do not change what a push carries.
TEST(PushRanges, AreThoseOfAllGroupsOfThePhase) {
  const std::vector<StepPhase> phases = {{"0", {"a", "c"}}, {"1", {"b", "d"}}};
  const ParameterGroups groups(kFour, {.strategies = {"c"}, .optimizers = {"d"}, .phases = phases});
  ASSERT_EQ(groups.size(), 4u);
  EXPECT_EQ(push_ranges(kFour, groups, {0, 80}), (Ranges{{0, 64}, {32, 80}}));
}

RC_GTEST_PROP(GroupRangesProperty, ContainEveryElementOnceInTheGroupOfItsTensor, ()) {
  std::vector<TensorShape> tensors;
  const auto count = *rc::gen::inRange<std::size_t>(1, 8);
  const auto groups = *rc::gen::inRange<std::uint32_t>(1, 4);
  std::vector<std::uint32_t> of;
  for (std::size_t t = 0; t < count; ++t) {
    tensors.push_back({"t", {*rc::gen::inRange<std::int64_t>(1, 70)}});
    of.push_back(*rc::gen::inRange<std::uint32_t>(0, groups));
  }
  const FlatLayout layout(tensors);
  const auto begin = *rc::gen::inRange<std::uint64_t>(0, layout.size() + 1);
  const auto end = *rc::gen::inRange<std::uint64_t>(begin, layout.size() + 1);
  std::vector<int> found(layout.size(), -1);
  const auto all = group_ranges(layout, of, groups, {begin, end});
  RC_ASSERT(all.size() == groups);
  for (std::uint32_t g = 0; g < groups; ++g) {
    std::uint64_t at = 0;
    for (const auto& r : all[g]) {
      RC_ASSERT(r.begin < r.end);
      RC_ASSERT(&r == all[g].data() || r.begin > at);  // sorted, and none adjacent
      at = r.end;
      for (auto i = r.begin; i < r.end; ++i) {
        RC_ASSERT(found.at(begin + i) == -1);
        found[begin + i] = static_cast<int>(g);
      }
    }
  }
  for (std::uint64_t i = 0; i < layout.size(); ++i) {
    int expected = -1;
    for (std::size_t t = 0; t < count; ++t)
      if (layout.range(t).begin <= i) expected = static_cast<int>(of[t]);
    RC_ASSERT(found[i] == (i >= begin && i < end ? expected : -1));
  }
}

}  // namespace
}  // namespace capstan
