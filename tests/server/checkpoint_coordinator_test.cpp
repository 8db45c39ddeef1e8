// When a checkpoint is due, and what it waits for: with a fake clock and real files.

#include "capstan/server/checkpoint_coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>

#include "capstan/checkpoint/run_checkpoints.h"
#include "server/no_members.h"
#include "support/eventually.h"
#include "support/fake_clock.h"
#include "support/temporary_folder.h"

namespace capstan::server {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using checkpoint::CheckpointState;
using ::testing::Each;

// A shard of ones, two workers with buffers, and a checkpoint every three updates or every minute.
class Coordination : public ::testing::Test {
 protected:
  Coordination() {
    JobTerms terms;
    terms.strategy = "sync";
    terms.workers = 2;
    shard_.set_terms(terms);
    EXPECT_TRUE(shard_.set_model({layout_}));
    std::ranges::fill(shard_.arrays()[0].values, 1.0f);
    shard_.set_initialized();
    aggregator_.set_layout(buffers_);
    for (const std::uint32_t rank : {0u, 1u}) aggregator_.joined({rank});
    coordinator_.emplace(checkpoint::CheckpointOptions{folder_.path(), 3, 60s, 3}, Version{}, time_.loop(),
                         aggregator_, writer_, [this] { ++done_; });
  }

  checkpoint::Manifest manifest(std::uint64_t version) const {
    checkpoint::Manifest m;
    m.version = {version};
    m.parameters = layout_.tensors();
    m.state = shard_.state_names();
    return m;
  }
  void send(std::uint32_t rank, float value) {
    aggregator_.receive({rank}, std::vector<float>(buffers_.size(), value));
  }
  // Advances the clock by `time`, with the server's ticks.
  void pass(Duration time) {
    for (const auto end = time_.now() + time; time_.now() < end;) {
      time_.pass(100ms);
      aggregator_.tick(time_.now());
    }
  }
  // The thread that writes is a real one.
  bool await_done(int times) {
    return testing::eventually([&] {
      time_.settle();
      return done_ >= times;
    });
  }
  CheckpointState state() const { return coordinator_->checkpointer().state(); }
  fs::path folder(std::uint64_t version) const { return checkpoint::folder_of(folder_.path(), {version}); }

  const testing::TemporaryFolder folder_;
  const FlatLayout layout_{{{"a", {3}}, {"b", {20}}}};
  const FlatLayout buffers_{{{"running_mean", {16}}}};
  testing::FakeTime time_;
  NoMembers events_;
  MemberTable members_{
      time_.loop(),
      {},
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_st>()),
      events_};
  ShardServer shard_{time_.loop(), ShardServer::Options{}, members_, [] {}};
  PartWriter writer_{time_.loop(), shard_};
  BufferAggregator aggregator_;
  std::optional<CheckpointCoordinator> coordinator_;
  int done_ = 0;
};

TEST_F(Coordination, OneIsDueAfterSoManyUpdates) {
  for (const std::uint64_t version : {1, 2}) {
    coordinator_->on_update({version});
    EXPECT_FALSE(coordinator_->is_requested()) << version;
    EXPECT_FALSE(aggregator_.is_requested({0})) << version;
  }
  coordinator_->on_update({3});
  EXPECT_TRUE(coordinator_->is_requested());
  EXPECT_TRUE(aggregator_.is_requested({0}) && aggregator_.is_requested({1}))
      << "the next weights request the buffers";
}

TEST_F(Coordination, OneIsDueAfterSoMuchTime) {
  pass(59900ms);
  coordinator_->on_update({1});
  EXPECT_FALSE(coordinator_->is_requested());
  pass(100ms);
  coordinator_->on_update({2});
  EXPECT_TRUE(coordinator_->is_requested());
}

TEST_F(Coordination, HasTheWeightsOfItsVersionAndTheMeanOfTheBuffers) {
  coordinator_->on_update({3});
  const auto order = coordinator_->begin(manifest(3), 1);
  EXPECT_EQ(order.version, Version{3});
  EXPECT_EQ(order.folder, fs::absolute(folder(3)).string());
  EXPECT_FALSE(coordinator_->is_requested());
  EXPECT_EQ(state(), CheckpointState::kCollectingBuffers);
  send(0, 2);
  EXPECT_EQ(state(), CheckpointState::kCollectingBuffers) << "the other worker's are missing";
  send(1, 5);
  EXPECT_EQ(state(), CheckpointState::kWriting);
  ASSERT_TRUE(await_done(1));
  EXPECT_EQ(coordinator_->checkpointer().error(), "");
  EXPECT_EQ(coordinator_->checkpointer().newest(), Version{3});
  const auto written = checkpoint::read_manifest(folder(3));
  EXPECT_EQ(written.version, Version{3});
  EXPECT_THAT(checkpoint::load_buffers(folder(3), written), Each(3.5f));
  std::vector<float> weights(layout_.size());
  checkpoint::load(folder(3), written, {0, layout_.size()},
                   std::vector<checkpoint::NamedArray>{{"weights", weights}});
  EXPECT_EQ(weights[0], 1);
  coordinator_->on_update({4});
  EXPECT_FALSE(coordinator_->is_requested());
  coordinator_->on_update({6});
  EXPECT_TRUE(coordinator_->is_requested()) << "the next one";
}

// Workers may be faster than the order.
TEST_F(Coordination, BuffersMayComeBeforeTheOrder) {
  coordinator_->on_update({3});
  send(0, 2);
  send(1, 4);
  (void)coordinator_->begin(manifest(3), 1);
  ASSERT_TRUE(await_done(1));
  EXPECT_THAT(checkpoint::load_buffers(folder(3), checkpoint::read_manifest(folder(3))), Each(3.0f));
}

TEST_F(Coordination, AStragglerHasTenSeconds) {
  coordinator_->on_update({3});
  (void)coordinator_->begin(manifest(3), 1);
  send(0, 2);
  pass(9900ms);
  EXPECT_EQ(state(), CheckpointState::kCollectingBuffers);
  pass(200ms);
  EXPECT_EQ(state(), CheckpointState::kWriting);
  ASSERT_TRUE(await_done(1));
  EXPECT_THAT(checkpoint::load_buffers(folder(3), checkpoint::read_manifest(folder(3))), Each(2.0f))
      << "the buffers received so far";
}

TEST_F(Coordination, NoneIsBegunWhileOneIsWritten) {
  coordinator_->on_update({3});
  (void)coordinator_->begin(manifest(3), 1);
  coordinator_->on_update({6});
  EXPECT_FALSE(coordinator_->is_requested());
  send(0, 1);
  send(1, 1);
  ASSERT_TRUE(await_done(1));
  coordinator_->on_update({7});
  EXPECT_TRUE(coordinator_->is_requested()) << "it is overdue";
}

TEST_F(Coordination, APartThatAnotherServerCannotWriteFailsIt) {
  coordinator_->on_update({3});
  (void)coordinator_->begin(manifest(3), 2);
  send(0, 1);
  send(1, 1);
  coordinator_->written(1, {{2}, "late news of another version", {}});
  EXPECT_EQ(state(), CheckpointState::kWriting);
  coordinator_->written(1, {{3}, "the disk is full", {}});
  ASSERT_TRUE(await_done(1));
  EXPECT_EQ(coordinator_->checkpointer().error(), "the disk is full");
  EXPECT_EQ(coordinator_->checkpointer().newest(), Version{});
  EXPECT_FALSE(fs::exists(folder(3)));
}

TEST_F(Coordination, ALostServerFailsIt) {
  coordinator_->on_update({3});
  (void)coordinator_->begin(manifest(3), 2);
  coordinator_->lost(1);
  ASSERT_TRUE(await_done(1));
  EXPECT_EQ(coordinator_->checkpointer().error(), "server 1 is lost");
  // The buffers arrive too late for it, and do not count for the next checkpoint.
  send(0, 7);
  send(1, 7);
  coordinator_->on_update({6});
  (void)coordinator_->begin(manifest(6), 1);
  EXPECT_EQ(state(), CheckpointState::kCollectingBuffers);
  send(0, 1);
  send(1, 2);
  ASSERT_TRUE(await_done(2));
  EXPECT_EQ(coordinator_->checkpointer().error(), "");
  EXPECT_THAT(checkpoint::load_buffers(folder(6), checkpoint::read_manifest(folder(6))), Each(1.5f));
}

}  // namespace
}  // namespace capstan::server
