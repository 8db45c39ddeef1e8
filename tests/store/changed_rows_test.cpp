#include "capstan/store/changed_rows.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace capstan::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Rows = std::vector<std::uint32_t>;

TEST(MergedRows, AreThoseOfAnyContribution) {
  const Rows a = {1, 5, 9}, b = {}, c = {0, 5, 10};
  const optimizer::RowContribution all[] = {
      {nullptr, 1, b}, {nullptr, 1, a}, {nullptr, 1, b}, {nullptr, 1, c}};
  EXPECT_THAT(merged_rows(all), ElementsAre(0, 1, 5, 9, 10));
  EXPECT_THAT(merged_rows(std::span(all).first(1)), IsEmpty());
}

TEST(ChangedRows, AreNoneBeforeTheFirstUpdate) {
  EXPECT_THAT(ChangedRows(3, 8).since(0), IsEmpty());
}

// The reference keeps all updates.
RC_GTEST_PROP(ChangedRowsProperty, AreTheUnionOfTheUpdatesSince, ()) {
  const auto first = *rc::gen::inRange(0u, 5u), end = first + *rc::gen::inRange(1u, 30u);
  ChangedRows changed(first, end);
  std::vector<std::set<std::uint32_t>> updates;
  const auto count = *rc::gen::inRange(0, 40);
  for (int i = 0; i < count; ++i) {
    const auto drawn = *rc::gen::container<Rows>(rc::gen::inRange(first, end));
    const std::set<std::uint32_t> rows(drawn.begin(), drawn.end());
    changed.add(Rows(rows.begin(), rows.end()));
    updates.push_back(rows);
    RC_ASSERT(changed.updates() == updates.size());
    for (std::size_t given = 0; given <= updates.size(); ++given) {
      std::set<std::uint32_t> expected;
      for (auto u = given; u < updates.size(); ++u) expected.insert(updates[u].begin(), updates[u].end());
      RC_ASSERT(changed.since(given) == Rows(expected.begin(), expected.end()));
    }
  }
}

}  // namespace
}  // namespace capstan::store
