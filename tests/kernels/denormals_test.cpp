#include "capstan/kernels/denormals.h"

#include <limits>
#include <thread>

#include <gtest/gtest.h>

namespace capstan::kernels {
namespace {

// Half of the smallest normal number, computed at run time.
float half_of_smallest() {
  volatile float smallest = std::numeric_limits<float>::min();
  return smallest * 0.5f;
}

// The value of a denormal number in arithmetic.
float scaled_denormal() {
  volatile float tiny = std::numeric_limits<float>::denorm_min();
  return tiny * 0x1p100f;
}

TEST(Denormals, AreFlushedOnTheCallingThreadOnly) {
  float written = -1, read = -1;
  std::thread([&] {
    flush_denormals_on_this_thread();
    written = half_of_smallest();
    read = scaled_denormal();
  }).join();
  EXPECT_TRUE(written == 0);
  EXPECT_TRUE(read == 0);
  EXPECT_GT(half_of_smallest(), 0);
  EXPECT_GT(scaled_denormal(), 0);
}

}  // namespace
}  // namespace capstan::kernels
