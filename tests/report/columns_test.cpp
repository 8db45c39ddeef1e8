#include "capstan/report/columns.h"

#include <cmath>

#include <gtest/gtest.h>

namespace capstan::report {
namespace {

TEST(Columns, CountAndCutCharacters) {
  EXPECT_EQ(width("µs…"), 3u);
  EXPECT_EQ(cut("straggler", 9), "straggler");
  EXPECT_EQ(cut("straggler", 5), "stra…");
  EXPECT_EQ(cut("µµµµ", 3), "µµ…");
}

TEST(Columns, NumbersHaveAtMostSix) {
  EXPECT_EQ(compact(0), "0");
  EXPECT_EQ(compact(0.01234), "0.0123");
  EXPECT_EQ(compact(1.5), "1.500");
  EXPECT_EQ(compact(12.345678), "12.35");
  EXPECT_EQ(compact(123.456), "123.5");
  EXPECT_EQ(compact(12345.6), "12346");
  EXPECT_EQ(compact(123456), "123k");
  EXPECT_EQ(compact(12'345'678), "12.3M");
  EXPECT_EQ(compact(999'999'999), "1.0G");
  for (double v = 1e-7; v < 1e18; v *= 1.37) {
    const auto near_ten = std::pow(10, std::round(std::log10(v)));
    for (const double value : {v, near_ten * 0.99999, near_ten * 0.9999999})
      EXPECT_LE(width(compact(value)), 6u) << value << ": " << compact(value);
  }
}

}  // namespace
}  // namespace capstan::report
