#include "capstan/training/threads.h"

#include <limits>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace capstan::training {
namespace {

TEST(Threads, DenormalsAreFlushed) {
  configure_torch(1);
  EXPECT_EQ(at::get_num_threads(), 1);
  const auto tiny = at::full({64}, std::numeric_limits<float>::min());
  EXPECT_EQ((tiny * 0.5).sum().item<float>(), 0);
}

}  // namespace
}  // namespace capstan::training
