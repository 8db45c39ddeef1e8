#include "capstan/simulate/shared_cores.h"

#include <limits>
#include <utility>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace capstan::simulate {
namespace {

TEST(SharedCores, EnoughCoresSlowNoTask) {
  SharedCores cores(2, 1e9);
  SharedCores::Task task = 9;
  cores.begin(0, 0, 1, 1, 0);
  cores.begin(1, 0.5, 2, 1, 0);
  EXPECT_DOUBLE_EQ(cores.next(0.5, task), 1);
  EXPECT_EQ(task, 0u);
  EXPECT_DOUBLE_EQ(cores.end(0, 1), 1);
  EXPECT_DOUBLE_EQ(cores.next(1, task), 2.5);
  EXPECT_EQ(task, 1u);
}

TEST(SharedCores, TooFewAreDividedEqually) {
  SharedCores cores(1, 1e9);
  SharedCores::Task task = 9;
  cores.begin(0, 0, 1, 1, 0);
  cores.begin(1, 0, 3, 1, 0);
  EXPECT_DOUBLE_EQ(cores.next(0, task), 2);  // half as fast
  EXPECT_DOUBLE_EQ(cores.end(0, 2), 1);
  EXPECT_DOUBLE_EQ(cores.done(1, 2), 1);
  EXPECT_DOUBLE_EQ(cores.next(2, task), 4);  // the rest without the other task
  EXPECT_DOUBLE_EQ(cores.busy(4), 4);
}

TEST(SharedCores, ATaskThatEndsEarlyFreesItsCores) {
  SharedCores cores(1, 1e9);
  SharedCores::Task task = 9;
  cores.begin(0, 0, 1, 1, 0);
  cores.begin(1, 0, 3, 1, 0);
  EXPECT_DOUBLE_EQ(cores.end(0, 1), 0.5);
  EXPECT_DOUBLE_EQ(cores.next(1, task), 3.5);
  EXPECT_EQ(task, 1u);
  cores.begin(0, 1, 0.25, 1, 0);
  EXPECT_DOUBLE_EQ(cores.next(1, task), 1.5);
  EXPECT_EQ(task, 0u);
}

TEST(SharedCores, MemoryIsSharedToo) {
  SharedCores cores(4, 10);
  SharedCores::Task task = 9;
  cores.begin(0, 0, 1, 1, 10);
  EXPECT_DOUBLE_EQ(cores.next(0, task), 1);
  cores.begin(1, 0, 3, 1, 10);
  EXPECT_DOUBLE_EQ(cores.next(0, task), 2);
  cores.end(0, 2);
  EXPECT_DOUBLE_EQ(cores.next(2, task), 4);
}

// A simulation in small time steps.
RC_GTEST_PROP(SharedCoresProperty, EqualsASimulationInSmallSteps, ()) {
  const auto tasks = *rc::gen::inRange<std::uint32_t>(1, 6);
  const auto cores = *rc::gen::inRange(1, 4);
  std::vector<double> begin, left, end(tasks, -1);
  for (std::uint32_t i = 0; i < tasks; ++i) {
    begin.push_back(*rc::gen::inRange(0, 20) / 10.0);
    left.push_back(*rc::gen::inRange(1, 20) / 10.0);
  }
  std::sort(begin.begin(), begin.end());

  SharedCores shared(cores, 1e9);
  std::vector<double> got(tasks, -1);
  double now = 0;
  std::uint32_t coming = 0;
  for (std::uint32_t ended = 0; ended < tasks;) {
    SharedCores::Task task = 0;
    const double next = shared.next(now, task);
    if (coming < tasks && begin[coming] <= next) {
      now = begin[coming];
      shared.begin(coming, now, left[coming], 1, 0);
      ++coming;
      continue;
    }
    now = next;
    RC_ASSERT(std::abs(shared.end(task, now) - left[task]) < 1e-9);
    got[task] = now;
    ++ended;
  }

  constexpr double kStep = 1e-3;
  for (int i = 0; i < 100'000; ++i) {
    const double t = i * kStep;
    double running = 0;
    for (std::uint32_t w = 0; w < tasks; ++w) running += begin[w] <= t && left[w] > 0;
    for (std::uint32_t w = 0; w < tasks; ++w) {
      if (begin[w] > t || left[w] <= 0) continue;
      left[w] -= kStep * std::min(1.0, cores / running);
      if (left[w] <= 0) end[w] = t + kStep;
    }
  }
  for (std::uint32_t w = 0; w < tasks; ++w) RC_ASSERT(std::abs(got[w] - end[w]) < 0.02);
}

}  // namespace
}  // namespace capstan::simulate
