#include "capstan/training/threads.h"

#include <limits>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace capstan::training {
namespace {

TEST(Threads, DenormalsAreFlushedOnEachOfThem) {
  for (const int threads : {1, 2}) {
    configure_torch(threads);
    EXPECT_EQ(at::get_num_threads(), threads);
    // Long enough for libtorch to use every thread.
    const auto tiny = at::full({1 << 20}, std::numeric_limits<float>::min());
    EXPECT_EQ(at::count_nonzero(tiny * 0.5).item<std::int64_t>(), 0) << threads << " threads";
  }
}

}  // namespace
}  // namespace capstan::training
