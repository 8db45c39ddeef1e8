#include "capstan/training/allreduce.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "capstan/base/failure.h"

namespace capstan::training {
namespace {

// Ranks as threads; rank r has r + 1 + i at element i.
TEST(Allreduce, SumsOverAllProcesses) {
  constexpr std::uint32_t kWorkers = 3;
  const auto first = AllreduceGroup::open("127.0.0.1:0", kWorkers, [] {});
  std::vector<std::vector<float>> results(kWorkers);
  const auto part = [&](AllreduceGroup& group, std::uint32_t rank) {
    group.rendezvous();
    for (const std::size_t size : {1u, 2u, 1000u, 70'001u}) {
      std::vector<float> values(size);
      for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<float>(rank + 1 + i);
      group.sum(values);
      results[rank].insert(results[rank].end(), values.begin(), values.end());
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::uint32_t rank = 1; rank < kWorkers; ++rank) {
      others.emplace_back([&, rank] {
        const auto group = AllreduceGroup::join(first->address(), rank, kWorkers);
        part(*group, rank);
      });
    }
    part(*first, 0);
  }
  std::vector<float> expected;
  for (const std::size_t size : {1u, 2u, 1000u, 70'001u}) {
    for (std::size_t i = 0; i < size; ++i) expected.push_back(static_cast<float>(6 + 3 * i));
  }
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

// No other process joins: the poll callback ends the wait.
TEST(Allreduce, GivesUpOnAMissingProcess) {
  int polls = 0;
  const auto group = AllreduceGroup::open("127.0.0.1:0", 2, [&] {
    if (++polls == 3) throw Failure(kLost, "worker 1 is lost");
  });
  EXPECT_THROW(group->rendezvous(), Failure);
  EXPECT_EQ(polls, 3);
}

// A process that ends after the rendezvous is detected in the next sum, or by the poll callback.
TEST(Allreduce, FailsWithoutOneProcess) {
  const auto first = AllreduceGroup::open("127.0.0.1:0", 2, [] {});
  std::jthread other([&] {
    const auto group = AllreduceGroup::join(first->address(), 1, 2);
    group->rendezvous();
    std::vector<float> values(10);
    group->sum(values);
  });
  first->rendezvous();
  std::vector<float> values(10);
  first->sum(values);
  other.join();
  EXPECT_THROW(first->sum(values), Failure);
}

}  // namespace
}  // namespace capstan::training
