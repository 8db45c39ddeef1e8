#include "capstan/bench/result_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace capstan::bench {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

nlohmann::json wire_result() {
  return {{"ok", true},
          {"model", "lenet"},
          {"bytes", 1'724'320},
          {"tensors", 8},
          {"workers", 4},
          {"servers", 2},
          {"strategy", "async"},
          {"optimizer", "adam"},
          {"transport", "local"},
          {"iterations", 100},
          {"seconds_per_iteration", 0.0004714},
          {"p50_us", 479.4},
          {"p99_us", 515.6},
          {"gigabytes_per_second", 7.326},
          {"memcpy_gigabytes_per_second", 10.24},
          {"floor_seconds", 0.0005071},
          {"floor_ratio", 0.9296},
          {"server_rss_bytes", 13'240'000},
          {"server_cpu_seconds", 0.016},
          {"worker_cpu_seconds", 1.234}};
}

TEST(BenchText, OfPushAndPull) {
  EXPECT_EQ(wire_text(wire_result()),
            "lenet (1.7 MB, 8 tensors), 4 workers, 2 servers, async, adam, local\n"
            "  per iteration   0.471 ms   (p50 479 µs, p99 516 µs)\n"
            "  throughput      7.33 GB/s pushed and pulled\n"
            "  memory floor    0.507 ms at memcpy's 10.2 GB/s: 0.93 × the floor\n"
            "  servers         13.2 MB, 0.02 s CPU; workers 1.23 s CPU\n"
            "  weights         equal to the reference\n");
}

TEST(BenchText, OfWrongWeightsSaysSo) {
  auto result = wire_result();
  result["ok"] = false;
  EXPECT_THAT(wire_text(result), EndsWith("\n  weights         WRONG\n"));
}

TEST(BenchText, CountsOneOfAThing) {
  auto result = wire_result();
  result["tensors"] = result["workers"] = result["servers"] = 1;
  EXPECT_THAT(wire_text(result), StartsWith("lenet (1.7 MB, 1 tensor), 1 worker, 1 server, async, "));
}

TEST(BenchText, OfImages) {
  nlohmann::json result = {{"ok", true},
                           {"dataset", "cifar10"},
                           {"threads", 2},
                           {"images", 150'000},
                           {"seconds", 3.004},
                           {"images_per_second", 49'933.4},
                           {"images_per_second_per_core", 24'966.7},
                           {"unreadable", 3}};
  EXPECT_EQ(data_text(result),
            "cifar10: 150000 samples in 3.00 s by 2 threads\n"
            "  49933 samples/s, 24967 per core; 3 unreadable\n");
  result["threads"] = 1;
  EXPECT_THAT(data_text(result), ::testing::HasSubstr(" by 1 thread\n"));
}

}  // namespace
}  // namespace capstan::bench
