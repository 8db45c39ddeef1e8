// A single shard: orders against plain arithmetic, and invalid orders.

#include "capstan/server/shard_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>

#include "capstan/server/part_writer.h"
#include "capstan/user_error.h"
#include "server/no_members.h"
#include "support/eventually.h"
#include "support/fake_clock.h"
#include "support/temporary_folder.h"

namespace capstan::server {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class Shard : public ::testing::Test {
 protected:
  using Action = transport::Placement::Action;

  explicit Shard(const std::string& strategy = "sync") {
    options_.optimizer.first.lr = 0.5;
    options_.optimizer.first.momentum = 0;
    shard_.emplace(time_.loop(), options_, members_, [this] { ++idle_; });
    JobTerms terms;
    terms.strategy = strategy;
    terms.workers = 2;
    shard_->set_terms(terms);
  }
  void begin() {
    ASSERT_TRUE(shard_->set_model({layout_}));
    for (std::uint32_t w : {0u, 1u}) shard_->staging().join({w}, {7});
    const auto placement = place_initial(0);
    ASSERT_EQ(placement.action, Action::kReceive);
    fill(placement, 1);
    ASSERT_TRUE(shard_->take_initial({0}));
  }
  transport::Placement place_initial(std::uint32_t worker) {
    return shard_->place_initial({worker}, layout_.size() * sizeof(float));
  }
  void fill(const transport::Placement& placement, float value) const {
    const std::vector<float> values(layout_.size(), value);
    std::ranges::copy(std::as_bytes(std::span(values)), placement.destination.begin());
  }
  void push(std::uint32_t worker, std::uint64_t sequence, float value) {
    wire::Push p;
    p.worker = {worker};
    p.incarnation = {7};
    p.sequence = {sequence};
    const auto bytes = layout_.size() * sizeof(float);
    const auto placement = shard_->staging().place({worker}, p, bytes);
    ASSERT_TRUE(placement) << placement.status().message();
    ASSERT_EQ(placement->action, transport::Placement::Action::kReceive);
    const std::vector<float> values(layout_.size(), value);
    std::ranges::copy(std::as_bytes(std::span(values)), placement->destination.begin());
    ASSERT_TRUE(shard_->staging().stage({worker}, p, bytes));
  }
  std::string error(const Order& order) { return shard_->execute(order).message(); }

  testing::FakeTime time_;
  NoMembers events_;
  MemberTable members_{
      time_.loop(),
      {},
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_st>()),
      events_};
  ShardServer::Options options_;
  std::optional<ShardServer> shard_;
  const FlatLayout layout_{{{"a", {3}}, {"fc.weight", {20}}}};
  int idle_ = 0;
};

TEST_F(Shard, AppliesWhatItHolds) {
  begin();
  push(0, 1, 2);
  push(1, 1, 4);
  EXPECT_EQ(error(wire::ApplyOrder{{0}, {{{0}, {1}, 0.25f}, {{1}, {1}, 0.75f}}}), "");
  EXPECT_FLOAT_EQ(shard_->weights()[0], 1 - 0.5f * (0.25f * 2 + 0.75f * 4));
  EXPECT_EQ(shard_->last_update_at(), time_.now());
  EXPECT_EQ(idle_, 1);
  EXPECT_THAT(error(wire::ApplyOrder{{1}, {{{0}, {1}, 1}}}), HasSubstr("worker 0 is not staged")) << "once";
}

// A payload may begin before the weights are initialized and end after that.
TEST_F(Shard, InitialWeightsThatAreStillArrivingChangeNothing) {
  ASSERT_TRUE(shard_->set_model({layout_}));
  for (std::uint32_t w : {0u, 1u}) shard_->staging().join({w}, {7});
  const auto late = place_initial(1), first = place_initial(0);
  EXPECT_EQ(place_initial(0).action, Action::kDiscard) << "one at a time from each worker";
  fill(first, 3);
  fill(late, 5);
  EXPECT_FALSE(shard_->is_initialized());
  ASSERT_TRUE(shard_->take_initial({0}));
  EXPECT_FALSE(shard_->take_initial({0})) << "the one that was discarded";
  fill(late, 7);
  EXPECT_THAT(shard_->weights(), Each(3));
  EXPECT_FALSE(shard_->take_initial({1}));
  EXPECT_THAT(shard_->weights(), Each(3));
  EXPECT_EQ(place_initial(1).action, Action::kDiscard);
}

// It repeats them when it has reconnected; what its broken connection sent is incomplete.
TEST_F(Shard, InitialWeightsOfABrokenConnectionAreNotUsed) {
  ASSERT_TRUE(shard_->set_model({layout_}));
  shard_->staging().join({0}, {7});
  place_initial(0);
  shard_->staging().join({0}, {7});
  EXPECT_FALSE(shard_->take_initial({0}));
  const auto again = place_initial(0);
  ASSERT_EQ(again.action, Action::kReceive);
  fill(again, 3);
  ASSERT_TRUE(shard_->take_initial({0}));
  EXPECT_THAT(shard_->weights(), Each(3));
}

TEST_F(Shard, DroppedPushesAreNotUsed) {
  begin();
  push(0, 1, 2);
  EXPECT_EQ(error(wire::DropOrder{{0}, {1}}), "");
  EXPECT_THAT(error(wire::ApplyOrder{{0}, {{{0}, {1}, 1}}}), HasSubstr("not staged"));
  EXPECT_FLOAT_EQ(shard_->weights()[0], 1);
}

TEST_F(Shard, AccumulatesForTheNextUpdate) {
  begin();
  push(0, 1, 2);
  EXPECT_THAT(error(wire::AccumulateOrder{{{0}, {1}, 1}, false}), HasSubstr("accumulated push"));
  EXPECT_EQ(error(wire::AccumulateOrder{{{0}, {1}, 1}, true}), "");
  push(0, 2, 3);
  EXPECT_EQ(error(wire::AccumulateOrder{{{0}, {2}, 2}, false}), "");
  wire::ApplyOrder apply{{0}, {}};
  apply.accumulated = true;
  EXPECT_EQ(error(apply), "");
  EXPECT_FLOAT_EQ(shard_->weights()[0], 1 - 0.5f * (1 * 2 + 2 * 3));
  EXPECT_THAT(error(apply), HasSubstr("without contributions")) << "the sum is used once";
  push(0, 3, 1);
  EXPECT_THAT(error(wire::AccumulateOrder{{{0}, {3}, 1}, false}), HasSubstr("accumulated push"));
  EXPECT_FLOAT_EQ(shard_->weights()[0], 1 - 0.5f * (1 * 2 + 2 * 3));
}

TEST_F(Shard, AnOrderThatMakesNoSenseChangesNothing) {
  EXPECT_THAT(error(wire::DropOrder{{0}, {1}}), HasSubstr("before there is a model"));
  ASSERT_TRUE(shard_->set_model({layout_}));
  EXPECT_THAT(error(wire::DeliverOrder{{wire::Role::kObserver, 0}, {}}),
              HasSubstr("before there are weights"));
  begin();
  push(0, 1, 2);
  wire::ApplyOrder apply{{0}, {{{0}, {1}, 1}}};
  apply.group = 1;
  EXPECT_THAT(error(apply), HasSubstr("group 1 of 1"));
  EXPECT_THAT(error(wire::DropOrder{{0}, {1}, 1}), HasSubstr("group 1 of 1"));
  EXPECT_THAT(error(wire::ApplyOrder{{0}, {}}), HasSubstr("an update without contributions"));
  EXPECT_THAT(error(wire::ApplyOrder{{0}, {{{0}, {2}, 1}}}), HasSubstr("not staged"));
  EXPECT_THAT(error(wire::ApplyOrder{{0}, {{{1}, {1}, 1}}}), HasSubstr("worker 1 is not staged"));
  wire::ApplyOrder nothing{{0}, {{{0}, {1}, 1}}};
  nothing.accumulated = true;
  EXPECT_THAT(error(nothing), HasSubstr("an update without contributions"));
  wire::ApplyOrder adaptive{{0}, {{{0}, {1}, 1}}, UpdateRule::Kind::kCompensateAdaptive};
  EXPECT_THAT(error(adaptive), HasSubstr("this job's strategy does not make"));
  EXPECT_FLOAT_EQ(shard_->weights()[0], 1);
  EXPECT_EQ(error(wire::ApplyOrder{{0}, {{{0}, {1}, 1}}}), "") << "the push is still staged";
}

class ShardOfGroups : public Shard {
 protected:
  ShardOfGroups() : Shard("default=sync,fc*=async") {}
};

TEST_F(ShardOfGroups, UpdatesOneGroupAtATime) {
  begin();
  push(0, 1, 2);
  wire::ApplyOrder apply{{0}, {{{0}, {1}, 1}}};
  apply.group = 1;
  EXPECT_EQ(error(apply), "");
  EXPECT_FLOAT_EQ(shard_->weights()[0], 1) << "of the default group";
  EXPECT_FLOAT_EQ(shard_->weights()[layout_.offset(1)], 1 - 0.5f * 2);
  EXPECT_THAT(error(apply), HasSubstr("not staged")) << "that group has processed it";
  apply.group = 0;
  EXPECT_EQ(error(apply), "");
  EXPECT_FLOAT_EQ(shard_->weights()[0], 1 - 0.5f * 2);
  EXPECT_THAT(error(wire::AccumulateOrder{{{0}, {1}, 1}, true}), HasSubstr("a job with groups"));
}

TEST_F(ShardOfGroups, AModelWithoutATensorOfAGroupIsRefused) {
  EXPECT_THAT(shard_->check_model({FlatLayout({{"a", {3}}})}).message(), HasSubstr("fc*"));
  EXPECT_TRUE(shard_->check_model({layout_}));
}

TEST_F(Shard, AnotherModelIsRefusedByItsTensor) {
  begin();
  EXPECT_TRUE(shard_->check_model({layout_}));
  EXPECT_THAT(shard_->check_model({FlatLayout({{"a", {4}}, {"fc.weight", {20}}})}).message(),
              HasSubstr("tensor a is 3 here and 4 there"));
}

TEST_F(Shard, AModelThatDoesNotFitIntoMemoryIsRefused) {
  const FlatLayout huge({{"a", {std::int64_t{1} << 46}}});  // larger than the address space
  const auto status = shard_->set_model({huge});
  EXPECT_EQ(status.code(), StatusCode::kRefused);
  EXPECT_THAT(status.message(), HasSubstr("memory"));
  EXPECT_FALSE(shard_->has_model());
  EXPECT_TRUE(shard_->set_model({layout_})) << "the next one may fit";
}

TEST_F(Shard, AnUnknownStrategyIsTheUsersMistake) {
  JobTerms terms;
  terms.strategy = "sinc";
  EXPECT_THROW(shard_->set_terms(terms), UserError);
}

// A part holds the shard as it was when the order was executed, regardless of later orders.
TEST_F(Shard, APartIsWrittenOfTheVersionThatWasOrdered) {
  const testing::TemporaryFolder folder;
  begin();
  PartWriter writer(time_.loop(), *shard_);
  std::optional<wire::CheckpointWritten> written;
  const auto keep = [&](const wire::CheckpointWritten& w) { written = w; };
  writer.write({{1}, folder / "step-1"}, true, keep);
  push(0, 1, 2);
  EXPECT_EQ(error(wire::ApplyOrder{{0}, {{{0}, {1}, 1}}}), "");
  time_.settle();
  EXPECT_FALSE(written) << "the buffers are missing";
  writer.supply({FlatLayout({{"running_mean", {2}}}), std::vector<float>(16, 5)});
  ASSERT_TRUE(testing::eventually([&] {
    time_.settle();
    return written.has_value();
  }));
  EXPECT_EQ(written->error, "");
  checkpoint::Manifest manifest;
  manifest.parameters = layout_.tensors();
  manifest.buffers = {{"running_mean", {2}}};
  for (const auto& p : written->pieces)
    manifest.pieces.push_back({p.file, p.key, p.array, p.tensor, {p.begin, p.end}, p.checksum});
  std::vector<float> weights(layout_.size());
  checkpoint::load(folder / "step-1", manifest, {0, layout_.size()},
                   std::vector<checkpoint::NamedArray>{{"weights", weights}});
  EXPECT_FLOAT_EQ(weights[0], 1) << "before the update";
  EXPECT_FLOAT_EQ(shard_->weights()[0], 0);
}

}  // namespace
}  // namespace capstan::server
