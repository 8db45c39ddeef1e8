// Sums of gradients against plain loops.

#include "capstan/averaging/combine.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "averaging/play.h"

namespace capstan::averaging {
namespace {

struct List {
  std::vector<std::uint32_t> rows;
  std::vector<float> values;
  Gradient gradient() const { return {rows, values}; }
};

RC_GTEST_PROP(Combine, UnitesRowsAndAddsThoseThatSeveralHave, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto columns = *rc::gen::inRange<std::uint64_t>(1, 40);
  const auto rows = *rc::gen::inRange<std::uint64_t>(1, 9000 / columns);
  const auto inputs = *rc::gen::inRange<std::size_t>(1, 7);
  const auto threads = *rc::gen::inRange(0u, 3u);
  const Shape shape{rows * columns, columns};
  std::vector<testing::Rows> maps;
  std::vector<List> lists(inputs);
  std::vector<Gradient> gradients;
  for (std::size_t k = 0; k < inputs; ++k) {
    maps.push_back(testing::gradient_of(seed, static_cast<std::uint32_t>(k), 0, 0, shape));
    for (const auto& [number, values] : maps[k]) {
      lists[k].rows.push_back(number);
      lists[k].values.insert(lists[k].values.end(), values.begin(), values.end());
    }
    gradients.push_back(lists[k].gradient());
  }
  List out{std::vector<std::uint32_t>(rows), std::vector<float>(rows * columns)};
  server::Pool pool(threads);
  const auto count = unite_rows(gradients, out.rows);
  out.rows.resize(count);
  combine_rows(gradients, 1.0f / static_cast<float>(inputs), columns, out.rows, out.values, pool);
  out.values.resize(count * columns);
  RC_ASSERT(are_rows_of(out.rows, {0, rows}));
  RC_ASSERT(testing::matches(testing::rows_of(out.gradient(), columns), testing::average_of(maps)));
}

// Several pieces of work, of which the last is not whole.
TEST(Combine, DoesNotDependOnThreads) {
  const std::size_t size = 200'001;
  std::vector<float> a(size), b(size), sum(size), expected(size);
  for (std::size_t i = 0; i < size; ++i) {
    a[i] = static_cast<float>(i);
    b[i] = 0.5f;
    expected[i] = (a[i] + b[i]) * 0.5f;  // exact
  }
  const Gradient inputs[] = {{{}, a}, {{}, b}};
  for (const auto threads : {0u, 1u, 3u}) {
    server::Pool pool(threads);
    combine(inputs, 0.5f, sum, pool);
    EXPECT_EQ(sum, expected);
    add({{}, b}, sum, pool);
    EXPECT_EQ(sum.back(), expected.back() + 0.5f);
  }
}

TEST(Combine, OfNoRowsIsEmpty) {
  const Gradient none[] = {{}, {}};
  server::Pool pool(1);
  EXPECT_EQ(unite_rows(none, {}), 0u);
  combine_rows(none, 1, 4, {}, {}, pool);
}

}  // namespace
}  // namespace capstan::averaging
