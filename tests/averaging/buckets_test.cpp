// Shapes, parts and places of buckets.

#include "capstan/averaging/buckets.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace capstan::averaging {
namespace {

TEST(Shapes, ThatAreImpossibleAreRejected) {
  EXPECT_TRUE(check_shapes({{1, 0}, {6, 3}, {std::uint64_t{1} << 33, 0}}));
  EXPECT_FALSE(check_shapes({}));
  EXPECT_FALSE(check_shapes({{0, 0}}));
  EXPECT_FALSE(check_shapes({{7, 3}}));
  EXPECT_FALSE(check_shapes({{(std::uint64_t{1} << 34) + 1, 0}}));
  EXPECT_FALSE(check_shapes({{std::uint64_t{1} << 33, 1}}));  // 2^33 rows
  EXPECT_FALSE(check_shapes({{std::uint64_t{1} << 33, 0}, {std::uint64_t{1} << 33, 0}, {1, 0}}));
  EXPECT_FALSE(check_shapes({{std::uint64_t(-1), 0}, {2, 0}}));
  EXPECT_FALSE(check_shapes(std::vector<Shape>(5000, {1, 0})));
}

RC_GTEST_PROP(Shapes, PartsCoverABucketInOrder, ()) {
  const auto columns = *rc::gen::inRange<std::uint64_t>(0, 5);
  const auto rows = *rc::gen::inRange<std::uint64_t>(1, 9000);
  const auto servers = *rc::gen::inRange<std::uint32_t>(1, 9);
  const Shape shape{rows * std::max<std::uint64_t>(columns, 1), columns};
  std::uint64_t end = 0;
  for (std::uint32_t s = 0; s < servers; ++s) {
    const auto part = part_of(shape, servers, s);
    RC_ASSERT(part.begin == end && part.end >= part.begin);
    if (columns == 0 && part.size() > 0) RC_ASSERT(part.begin * sizeof(float) % 4096 == 0u);
    end = part.end;
  }
  RC_ASSERT(end == rows);
}

TEST(RowNumbers, IncreaseStrictlyWithinTheirRange) {
  const std::vector<std::uint32_t> good{3, 4, 9}, twice{3, 3}, back{4, 3}, none{};
  EXPECT_TRUE(are_rows_of(good, {3, 10}));
  EXPECT_FALSE(are_rows_of(good, {4, 10}));
  EXPECT_FALSE(are_rows_of(good, {3, 9}));
  EXPECT_FALSE(are_rows_of(twice, {0, 10}));
  EXPECT_FALSE(are_rows_of(back, {0, 10}));
  EXPECT_TRUE(are_rows_of(none, {5, 5}));
}

TEST(ArenaLayout, PlacesNumbersAndValuesOnPages) {
  const ArenaLayout layout({{1025, 0}, {30, 3}, {1, 0}});
  std::vector<float> arena(layout.bytes() / sizeof(float));
  EXPECT_EQ(layout.bytes(), 5u * 4096);  // two pages, one of numbers and one of values, one
  EXPECT_EQ(layout.values(arena, 0).size(), 1025u);
  EXPECT_EQ(layout.rows(arena, 0).size(), 0u);
  EXPECT_EQ(layout.rows(arena, 1).size(), 10u);
  EXPECT_EQ(reinterpret_cast<float*>(layout.rows(arena, 1).data()), arena.data() + 2048);
  EXPECT_EQ(layout.values(arena, 1).data(), arena.data() + 3072);
  EXPECT_EQ(layout.values_offset(2), 4u * 4096);
}

}  // namespace
}  // namespace capstan::averaging
