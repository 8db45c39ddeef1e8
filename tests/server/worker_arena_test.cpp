#include "capstan/server/worker_arena.h"

#include <gtest/gtest.h>

namespace capstan::server {
namespace {

using transport::Segment;

constexpr Range kShard{1024, 3072};
constexpr std::uint64_t kElements = 4096;

TEST(WorkerArena, ShowsTheServersRangeOfTheWorkersMemory) {
  auto segment = Segment::create(kElements * sizeof(float), Segment::PeerMay::kRead);
  for (std::size_t i = 0; i < kElements; ++i) segment.floats()[i] = static_cast<float>(i);
  WorkerArena arena(kShard, kElements);
  ASSERT_TRUE(arena.take_gradients(std::move(*segment.map_again())));
  ASSERT_EQ(arena.gradients().size(), 2048u);
  EXPECT_EQ(arena.gradients().front(), 1024.0f);
  EXPECT_EQ(arena.gradients().back(), 3071.0f);
}

// An update may be reading it on another thread.
TEST(WorkerArena, KeepsAMappingThatIsInUse) {
  auto first = Segment::create(kElements * sizeof(float), Segment::PeerMay::kReadAndWrite);
  auto second = Segment::create(kElements * sizeof(float), Segment::PeerMay::kReadAndWrite);
  first.floats()[1024] = 1;
  second.floats()[1024] = 2;
  WorkerArena arena(kShard, kElements);
  ASSERT_TRUE(arena.take_gradients(std::move(*first.map_again())));
  ASSERT_TRUE(arena.take_weights(std::move(*first.map_again())));
  const auto* gradients = arena.gradients().data();
  const auto* weights = arena.shared_weights().data();
  ASSERT_TRUE(arena.take_gradients(std::move(*second.map_again())));
  ASSERT_TRUE(arena.take_weights(std::move(*second.map_again())));
  EXPECT_EQ(arena.gradients().data(), gradients);
  EXPECT_EQ(arena.shared_weights().data(), weights);
  EXPECT_EQ(*gradients, 1);
}

TEST(WorkerArena, RefusesMemoryOfAnotherSizeOrThatMayNotBeWritten) {
  WorkerArena arena(kShard, kElements);
  EXPECT_FALSE(arena.take_gradients(Segment::create(kElements * sizeof(float) - 4, Segment::PeerMay::kRead)));
  const auto sealed = Segment::create(kElements * sizeof(float), Segment::PeerMay::kRead);
  EXPECT_FALSE(arena.take_weights(std::move(*sealed.map_again())));
}

}  // namespace
}  // namespace capstan::server
