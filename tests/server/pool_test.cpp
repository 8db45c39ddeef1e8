// Threads that divide work.

#include "capstan/server/pool.h"

#include <atomic>
#include <vector>

#include <gtest/gtest.h>

namespace capstan::server {
namespace {

TEST(Pool, RunsEveryPieceOnceWithItsCaller) {
  for (const unsigned threads : {0u, 1u, 3u}) {
    Pool pool(threads);
    for (std::size_t pieces = 0; pieces < 50; ++pieces) {
      std::vector<std::atomic<int>> runs(pieces);
      pool.run_with_caller(pieces, [&](std::size_t i) { ++runs[i]; });
      for (const auto& count : runs) EXPECT_EQ(count, 1);
    }
  }
}

TEST(Pool, RunsAgainAfterItsCallerTookPart) {
  Pool pool(2);
  std::atomic<int> runs = 0;
  pool.run_with_caller(10, [&](std::size_t) { ++runs; });
  std::atomic<bool> done = false;
  pool.run(
      10, [&](std::size_t) { ++runs; },
      [&] {
        done = true;
        done.notify_all();
      });
  done.wait(false);
  EXPECT_EQ(runs, 20);
}

}  // namespace
}  // namespace capstan::server
