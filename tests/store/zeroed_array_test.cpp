#include "capstan/store/zeroed_array.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

namespace capstan::store {
namespace {

TEST(ZeroedArray, IsZeroAndWritableFromEndToEnd) {
  for (std::size_t size : {1u, 1000u, (1u << 19) + 1u, (3u << 19) + 7u}) {
    ZeroedArray array(size);
    std::span<float> values = array;
    ASSERT_EQ(values.size(), size);
    EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float x) { return x == 0; }));
    std::fill(values.begin(), values.end(), 1.0f);
  }
}

TEST(ZeroedArray, LargeOnesBeginOnAHugePage) {
  for (std::size_t size : {(1 << 20) + 1000, (1 << 20) + 5000, 1 << 20}) {
    ZeroedArray array(size), beside(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.data()) % (2u << 20), 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(beside.data()) % (2u << 20), 0u);
  }
}

TEST(ZeroedArray, MayBeEmpty) {
  ZeroedArray array(0);
  EXPECT_TRUE(std::span<float>(array).empty());
}

TEST(ZeroedArray, MovesItsMemoryAndReleasesItOnce) {
  auto first = std::make_unique<ZeroedArray>(10);
  first->data()[3] = 5;
  auto second = std::make_unique<ZeroedArray>(std::move(*first));
  first.reset();
  EXPECT_EQ(second->data()[3], 5);
  ZeroedArray third(20);
  third = std::move(*second);
  second.reset();
  EXPECT_EQ(third.data()[3], 5);
  EXPECT_EQ(std::span<float>(third).size(), 10u);
}

}  // namespace
}  // namespace capstan::store
