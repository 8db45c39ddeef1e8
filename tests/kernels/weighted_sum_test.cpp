#include "capstan/kernels/weighted_sum.h"

#include <cmath>
#include <vector>

#include "each_target.h"

namespace capstan::kernels {
namespace {

CAPSTAN_FOR_EACH_TARGET(WeightedSum);

struct Arrays {
  Arrays(std::size_t terms, std::size_t size) : values(terms, std::vector<float>(size)) {
    Random random(terms * 1000 + size);
    for (auto& array : values)
      for (auto& x : array) x = draw(random);
    for (std::size_t k = 0; k < terms; ++k) list.push_back({values[k].data(), draw(random)});
  }
  std::vector<std::vector<float>> values;
  std::vector<Term> list;
};

TEST_P(WeightedSum, EqualsPlainArithmetic) {
  for (std::size_t terms : {1, 2, 3, 4, 5, 8, 9, 31}) {
    for (std::size_t size : {1, 7, 16, 64, 1000, 1027}) {
      const Arrays a(terms, size);
      std::vector<float> out(size);
      weighted_sum(a.list, 0, out);
      for (std::size_t i = 0; i < size; ++i) {
        double expected = 0;
        for (const auto& t : a.list) expected += static_cast<double>(t.factor) * t.values[i];
        ASSERT_NEAR(out[i], expected, 1e-7 * static_cast<double>(terms)) << terms << " terms, element " << i;
      }
    }
  }
}

TEST_P(WeightedSum, CanBeAddedToTheOutput) {
  for (std::size_t terms : {0, 1, 2, 5, 8}) {
    const Arrays a(terms, 1027);
    std::vector<float> out(1027);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(i % 10) / 10;
    add_weighted(a.list, 0, out);
    for (std::size_t i = 0; i < out.size(); ++i) {
      double expected = static_cast<double>(i % 10) / 10;
      for (const auto& t : a.list) expected += static_cast<double>(t.factor) * t.values[i];
      ASSERT_NEAR(out[i], expected, 1e-6) << terms << " terms, element " << i;
    }
  }
}

TEST_P(WeightedSum, AddsInTheOrderGiven) {
  const float big = 1e8f, one = 1, minus = -1e8f;
  float out = 0;
  weighted_sum(std::vector<Term>{{&big}, {&one}, {&minus}}, 0, {&out, 1});
  EXPECT_EQ(out, 0) << "1 is lost in rounding";
  weighted_sum(std::vector<Term>{{&big}, {&minus}, {&one}}, 0, {&out, 1});
  EXPECT_EQ(out, 1);
}

TEST_P(WeightedSum, AnElementIsTheSameAtEveryPosition) {
  for (std::size_t terms : {1, 3, 4, 6, 13}) {
    Arrays a(terms, 100);
    for (auto& array : a.values) std::fill(array.begin(), array.end(), array[0]);
    std::vector<float> out(100);
    weighted_sum(a.list, 0, out);
    for (std::size_t size = 1; size <= 40; ++size) {
      std::vector<float> part(size);
      weighted_sum(a.list, size, part);
      for (float x : part) ASSERT_EQ(x, out[0]) << terms << " terms of " << size;
    }
  }
}

TEST_P(WeightedSum, SplitsDoNotMatter) {
  constexpr std::size_t kSize = 333;
  for (std::size_t terms : {1, 2, 4, 7}) {
    const Arrays a(terms, kSize);
    std::vector<float> whole(kSize), cut(kSize);
    weighted_sum(a.list, 0, whole);
    for (std::size_t at = 1; at < kSize; ++at) {
      weighted_sum(a.list, 0, std::span(cut).first(at));
      weighted_sum(a.list, at, std::span(cut).subspan(at));
      ASSERT_EQ(cut, whole) << "cut at " << at;
    }
  }
}

TEST_P(WeightedSum, WritesOnlyItsOutput) {
  const Arrays a(4, 200);
  for (std::size_t size = 0; size < 70; ++size) {
    std::vector<float> out(size + 2, 77);
    weighted_sum(a.list, 3, std::span(out).subspan(1, size));
    ASSERT_EQ(out.front(), 77);
    ASSERT_EQ(out.back(), 77);
  }
}

}  // namespace
}  // namespace capstan::kernels
