#include "capstan/base/arena_order.h"

#include <numeric>

#include <gtest/gtest.h>

namespace capstan {
namespace {

// The position of an element of a row-major tensor when its second dimension varies fastest.
std::size_t channels_last_place(const std::vector<std::int64_t>& dims, std::size_t c_place) {
  std::vector<std::size_t> index(dims.size());
  for (std::size_t d = dims.size(); d-- > 0;) {
    index[d] = c_place % static_cast<std::size_t>(dims[d]);
    c_place /= static_cast<std::size_t>(dims[d]);
  }
  const auto channels = static_cast<std::size_t>(dims[1]);
  const auto height = static_cast<std::size_t>(dims[2]), width = static_cast<std::size_t>(dims[3]);
  return ((index[0] * height + index[2]) * width + index[3]) * channels + index[1];
}

std::vector<float> counting(const std::vector<std::int64_t>& dims) {
  std::size_t count = 1;
  for (const auto d : dims) count *= static_cast<std::size_t>(d);
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.5f);
  return values;
}

TEST(ArenaOrder, OfFourDimensionsIsChannelsLast) {
  const std::vector<std::vector<std::int64_t>> shapes = {{2, 3, 4, 5}, {1, 1, 1, 1}, {7, 1, 3, 3},
                                                         {1, 6, 1, 2}, {5, 4, 1, 1}, {3, 2, 5, 1},
                                                         {0, 3, 2, 2}, {2, 0, 2, 2}, {2, 2, 0, 2}};
  for (const auto& dims : shapes) {
    const auto file = counting(dims);
    std::vector<float> arena(file.size(), -1), back(file.size(), -1);
    to_arena_order(dims, file, arena);
    for (std::size_t i = 0; i < file.size(); ++i) EXPECT_EQ(arena[channels_last_place(dims, i)], file[i]);
    to_file_order(dims, arena, back);
    EXPECT_EQ(back, file);
  }
}

TEST(ArenaOrder, OfOtherTensorsIsCOrder) {
  for (const std::vector<std::int64_t>& dims :
       {std::vector<std::int64_t>{}, {0}, {1}, {9}, {3, 4}, {2, 3, 4}, {2, 2, 2, 2, 2}}) {
    const auto values = counting(dims);
    std::vector<float> arena(values.size(), -1), file(values.size(), -1);
    to_arena_order(dims, values, arena);
    to_file_order(dims, values, file);
    EXPECT_EQ(arena, values);
    EXPECT_EQ(file, values);
  }
}

}  // namespace
}  // namespace capstan
