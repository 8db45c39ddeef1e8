#include "capstan/placement/shards.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace capstan::placement {
namespace {

TEST(Shards, OneServerHoldsEverything) {
  EXPECT_EQ(split(12345, 1), (std::vector<Range>{{0, 12345}}));
}

TEST(Shards, BoundariesAreOnPages) {
  EXPECT_EQ(split(4 * 1024, 2), (std::vector<Range>{{0, 2048}, {2048, 4096}}));
  EXPECT_EQ(split(3 * 1024 + 5, 2), (std::vector<Range>{{0, 2048}, {2048, 3077}}));
}

TEST(Shards, WithMoreServersThanPagesTheLastOnesAreEmpty) {
  EXPECT_EQ(split(1500, 4), (std::vector<Range>{{0, 1024}, {1024, 1500}, {1500, 1500}, {1500, 1500}}));
  EXPECT_EQ(split(0, 2), (std::vector<Range>{{0, 0}, {0, 0}}));
}

// Tensors of 1200, 1000, 30 and 7 elements begin at 0, 1200, 2208 and 2240; two servers split them at 2048.
TEST(PushBytes, CountTheParametersOfEachPhase) {
  const FlatLayout layout({{"d.weight", {1200}}, {"g.weight", {1000}}, {"d.bias", {30}}, {"g.bias", {7}}});
  const ParameterGroups phases(layout, {.phases = {{"d", {"d.*"}}, {"g", {"g.*"}}}});
  using Bytes = std::vector<std::uint64_t>;
  EXPECT_EQ(push_bytes(layout, phases, 1), (Bytes{4 * (1200 + 1000 + 30), 4 * (1000 + 30 + 7)}));
  EXPECT_EQ(push_bytes(layout, phases, 2), (Bytes{4 * (1200 + 30), 4 * (1000 + 30 + 7)}));
  EXPECT_EQ(push_bytes(layout, ParameterGroups(layout, {}), 2), (Bytes{4 * 2237}));
}

RC_GTEST_PROP(ShardsProperty, CoverTheArrayInOrderOnPagesAndInBalance, ()) {
  const auto size = *rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(0, 20'000),
                                    rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 34));
  const auto servers = *rc::gen::inRange<std::uint32_t>(1, 70);
  const auto ranges = split(size, servers);
  RC_ASSERT(ranges.size() == servers);
  std::uint64_t at = 0, least = size, most = 0;
  for (const auto& r : ranges) {
    RC_ASSERT(r.begin == at);
    RC_ASSERT(r.end >= r.begin);
    RC_ASSERT(r.begin % 1024 == 0u || r.begin == size);
    at = r.end;
    const auto pages = (r.size() + 1023) / 1024;
    least = std::min(least, pages);
    most = std::max(most, pages);
  }
  RC_ASSERT(at == size);
  RC_ASSERT(most - least <= 1u || size == 0u);
}

}  // namespace
}  // namespace capstan::placement
