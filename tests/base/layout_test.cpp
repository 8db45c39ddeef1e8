#include "capstan/layout.h"

#include <gtest/gtest.h>

namespace capstan {
namespace {

TEST(FlatLayout, EveryTensorBeginsOnItsOwnCacheLine) {
  const FlatLayout layout({{"a", {3, 5}}, {"scalar", {}}, {"b", {16}}, {"c", {17}}});
  EXPECT_EQ(layout.offset(0), 0u);
  EXPECT_EQ(layout.offset(1), 16u);  // after 15 elements and a gap
  EXPECT_EQ(layout.offset(2), 32u);
  EXPECT_EQ(layout.offset(3), 48u);
  EXPECT_EQ(layout.size(), 80u);
  EXPECT_EQ(layout.parameters(), 15u + 1 + 16 + 17);
  EXPECT_EQ(layout.bytes(), 49u * 4);
  EXPECT_EQ(layout.range(3), (Range{48, 65}));
}

TEST(FlatLayout, FindsATensorByItsName) {
  const FlatLayout layout({{"a", {3}}, {"b", {2}}, {"b", {4}}});
  EXPECT_EQ(layout.find("a"), 0u);
  EXPECT_EQ(layout.find("b"), 1u);  // the first of two
  EXPECT_EQ(layout.find("c"), std::nullopt);
}

TEST(FlatLayout, WithoutTensorsIsEmpty) {
  EXPECT_EQ(FlatLayout().size(), 0u);
  EXPECT_EQ(FlatLayout(std::vector<TensorShape>{}).parameters(), 0u);
}

TEST(FlatLayout, TheFirstDifferenceIsNamed) {
  const FlatLayout layout({{"conv.weight", {20, 1, 5, 5}}, {"conv.bias", {20}}});
  EXPECT_EQ(layout.difference(layout), "");
  EXPECT_EQ(layout.difference(FlatLayout({{"conv.weight", {20, 1, 5, 5}}, {"conv.bias", {21}}})),
            "tensor conv.bias is 20 here and 21 there");
  EXPECT_EQ(layout.difference(FlatLayout({{"conv.weight", {20, 3, 5, 5}}, {"conv.bias", {21}}})),
            "tensor conv.weight is 20x1x5x5 here and 20x3x5x5 there");
  EXPECT_EQ(layout.difference(FlatLayout({{"fc.weight", {20, 1, 5, 5}}, {"conv.bias", {20}}})),
            "tensor 0 is conv.weight here and fc.weight there");
  EXPECT_EQ(layout.difference(FlatLayout({{"conv.weight", {20, 1, 5, 5}}})), "2 tensors here and 1 there");
}

// The same number of elements in another shape is a different model.
TEST(FlatLayout, ATransposedTensorIsADifference) {
  const FlatLayout a({{"w", {2, 3}}}), b({{"w", {3, 2}}});
  EXPECT_EQ(a.difference(b), "tensor w is 2x3 here and 3x2 there");
}

TEST(ShapeText, NamesScalars) {
  EXPECT_EQ(shape_text({}), "scalar");
  EXPECT_EQ(shape_text({7}), "7");
  EXPECT_EQ(shape_text({2, 3, 4}), "2x3x4");
}

TEST(Range, ContainsRangesInsideIt) {
  const Range r{10, 20};
  EXPECT_EQ(r.size(), 10u);
  EXPECT_TRUE(r.contains({10, 20}));
  EXPECT_TRUE(r.contains({15, 15}));
  EXPECT_FALSE(r.contains({9, 12}));
  EXPECT_FALSE(r.contains({19, 21}));
}

}  // namespace
}  // namespace capstan
