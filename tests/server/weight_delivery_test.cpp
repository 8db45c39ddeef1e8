// Delivery of weights to one member: in place, into shared memory, or sent.

#include "capstan/server/weight_delivery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>

#include "capstan/transport/loopback/loopback.h"

#include "support/fake_clock.h"

namespace capstan::server {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using transport::Segment;
using wire::Role;

constexpr std::size_t kElements = 8;
constexpr Incarnation kIncarnation{1};

// A member that keeps the weights it receives.
class Client final : public cluster::Channel::Events {
 public:
  Client(std::unique_ptr<transport::Connection> connection, const cluster::Token& token)
      : channel(cluster::Channel::Side::kConnecting, std::move(connection), token, *this) {}

  struct Delivered {
    Version version;
    std::vector<float> weights;  // empty if only the message arrived
  };
  std::vector<Delivered> delivered;
  cluster::Channel channel;

 private:
  void on_trusted(cluster::Channel&) override {}
  transport::Placement on_payload(cluster::Channel&, const wire::Message&, std::size_t bytes) override {
    payload_.resize(bytes / sizeof(float));
    return transport::Placement::receive(std::as_writable_bytes(std::span(payload_)));
  }
  void on_message(cluster::Channel&, cluster::Arrival arrival) override {
    if (const auto* weights = std::get_if<wire::Weights>(&arrival.message))
      delivered.push_back({weights->version, std::exchange(payload_, {})});
  }
  void on_end(cluster::Channel&, Status) override {}

  std::vector<float> payload_;
};

class Delivery : public ::testing::Test, private MemberTable::Events {
 protected:
  void start(bool in_place, bool share_memory) {
    network_.emplace(share_memory);
    listener_ = network_->listen(time_.loop(), "server",
                                 [this](auto connection) { members_.accept(std::move(connection)); });
    std::ranges::fill(weights_, 1.0f);
    executor_.emplace(time_.loop(), std::make_unique<store::DenseShard>(weights_, optimizer_), 1);
    delivery_.emplace(*executor_, members_, WeightDelivery::Options{.in_place = in_place});
  }
  // On the loop of the server, or on another one.
  Client& join(Role role, std::uint32_t index, Incarnation incarnation = kIncarnation,
               transport::EventLoop* loop = nullptr) {
    auto connection = std::move(*network_->connect(loop ? *loop : time_.loop(), "server"));
    auto& client = *clients_.emplace_back(std::make_unique<Client>(std::move(connection), cluster::Token()));
    if (loop) settle(*loop);
    time_.settle();
    wire::Join join;
    join.role = role;
    join.index = index;
    join.incarnation = incarnation;
    client.channel.send(join);
    time_.settle();
    return client;
  }
  // Runs this loop and the server's until nothing more happens.
  void settle(transport::EventLoop& loop) {
    do {
      time_.settle();
    } while (loop.run_once(TimePoint::min()));
  }
  // Adds one to every weight.
  void update() {
    executor_->apply(0, Version{0}, {}, {{minus_one_.data(), 1}}, false, {}, [] {});
  }
  // Ordered for the worker 0 and the observer 0 that are connected.
  void to_worker(const std::shared_ptr<WorkerArena>& arena, const wire::Weights& reply) {
    delivery_->to_worker(*members_.find({Role::kWorker, 0}), arena, reply);
  }
  void to_observer(const wire::Weights& reply) {
    delivery_->to_observer(*members_.find({Role::kObserver, 0}), reply);
  }
  static wire::Weights reply(std::uint64_t version) {
    wire::Weights message;
    message.version = {version};
    return message;
  }

  testing::FakeTime time_;
  MemberTable members_{
      time_.loop(),
      {},
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_st>()),
      *this};
  std::optional<transport::loopback::Network> network_;
  std::unique_ptr<transport::Listener> listener_;
  std::vector<std::unique_ptr<Client>> clients_;
  const optimizer::OptimizerSet optimizer_{optimizer::Options{.lr = 1, .momentum = 0}, {}};
  std::vector<float> weights_ = std::vector<float>(kElements), minus_one_ = std::vector<float>(kElements, -1);
  std::optional<ShardExecutor> executor_;
  std::optional<WeightDelivery> delivery_;
  const std::shared_ptr<WorkerArena> arena_ = std::make_shared<WorkerArena>(Range{0, kElements}, kElements);

 private:
  void on_join(Peer& peer, const wire::Join& join) override {
    members_.bind(peer, {join.role, *join.index}, join.incarnation);
  }
  transport::Placement on_payload(Peer&, const wire::Message&, std::size_t) override {
    return transport::Placement::discard();
  }
  void on_message(Peer&, cluster::Arrival) override {}
  void on_lost(const wire::Member&, Incarnation, const Status&) override {}
};

// An update that is ordered later does not change what is delivered.
TEST_F(Delivery, SendsTheVersionAtItsPlaceInTheQueue) {
  start(false, false);
  auto& worker = join(Role::kWorker, 0);
  auto& observer = join(Role::kObserver, 0);
  update();
  to_worker(arena_, reply(1));
  to_observer(reply(1));
  update();
  time_.settle();
  for (const auto* client : {&worker, &observer}) {
    ASSERT_EQ(client->delivered.size(), 1u);
    EXPECT_EQ(client->delivered[0].version.value, 1u);
    EXPECT_EQ(client->delivered[0].weights, std::vector<float>(kElements, 2));
  }
  EXPECT_THAT(weights_, Each(3));
}

TEST_F(Delivery, CopiesIntoMemoryThatTheWorkerShares) {
  start(false, true);
  auto& worker = join(Role::kWorker, 0);
  auto segment = Segment::create(kElements * sizeof(float), Segment::PeerMay::kReadAndWrite);
  ASSERT_TRUE(arena_->take_weights(std::move(*segment.map_again())));
  update();
  to_worker(arena_, reply(1));
  update();
  time_.settle();
  ASSERT_EQ(worker.delivered.size(), 1u);
  EXPECT_THAT(worker.delivered[0].weights, IsEmpty()) << "nothing is sent beside the message";
  EXPECT_THAT(segment.floats().first(kElements), Each(2));
}

TEST_F(Delivery, InPlaceIsAMessageWhereMemoryIsShared) {
  start(true, true);
  auto& worker = join(Role::kWorker, 0);
  update();
  to_worker(arena_, reply(1));
  time_.settle();
  ASSERT_EQ(worker.delivered.size(), 1u);
  EXPECT_THAT(worker.delivered[0].weights, IsEmpty());
}

// The weights are sent from the memory that updates change, so that an update waits until they are sent.
TEST_F(Delivery, InPlaceOverANetworkHoldsTheNextUpdateBack) {
  start(true, false);
  auto& worker = join(Role::kWorker, 0);
  update();
  to_worker(arena_, reply(1));
  update();
  time_.settle();
  ASSERT_EQ(worker.delivered.size(), 1u);
  EXPECT_EQ(worker.delivered[0].weights, std::vector<float>(kElements, 2));
  EXPECT_THAT(weights_, Each(3)) << "and then it is made";
}

// Every process numbers its requests from the same number on, so it would take the answer for its own.
TEST_F(Delivery, ANewIncarnationDoesNotGetTheAnswerToItsPredecessor) {
  for (const auto& [in_place, share_memory] :
       {std::pair{true, true}, {true, false}, {false, true}, {false, false}}) {
    SCOPED_TRACE(::testing::Message() << in_place << share_memory);
    start(in_place, share_memory);
    const auto arena = std::make_shared<WorkerArena>(Range{0, kElements}, kElements);
    if (share_memory && !in_place) {
      auto segment = Segment::create(kElements * sizeof(float), Segment::PeerMay::kReadAndWrite);
      ASSERT_TRUE(arena->take_weights(std::move(*segment.map_again())));
    }
    join(Role::kWorker, 0);
    join(Role::kObserver, 0);
    executor_->pin();  // no delivery is made yet
    update();
    to_worker(arena, reply(1));
    to_observer(reply(1));
    members_.forget(0, kIncarnation, true);
    auto& worker = join(Role::kWorker, 0, {2});
    auto& observer = join(Role::kObserver, 0, {2});
    executor_->unpin();
    time_.settle();
    EXPECT_THAT(worker.delivered, IsEmpty());
    EXPECT_THAT(observer.delivered, IsEmpty());
    EXPECT_THAT(weights_, Each(2)) << "and nothing waits for it";
    members_.forget(0, {2}, true);
    clients_.clear();
    time_.settle();
  }
}

// At most the answer that is being sent and the newest one are kept.
TEST_F(Delivery, AnObserverThatDoesNotReadMissesAnswers) {
  start(false, false);
  transport::EventLoop elsewhere;  // its events are handled only when the test says so
  auto& observer = join(Role::kObserver, 0, kIncarnation, &elsewhere);
  const wire::Member member{Role::kObserver, 0};
  for (std::uint64_t version : {1u, 2u, 3u, 4u}) {
    update();
    to_observer(reply(version));
    time_.settle();
  }
  EXPECT_TRUE(delivery_->is_answering(member));
  settle(elsewhere);
  ASSERT_EQ(observer.delivered.size(), 2u);
  for (const auto& [delivered, version] :
       {std::pair{&observer.delivered[0], 1u}, std::pair{&observer.delivered[1], 4u}}) {
    EXPECT_EQ(delivered->version.value, version);
    EXPECT_THAT(delivered->weights, Each(1.0f + static_cast<float>(version)));
  }
  EXPECT_FALSE(delivery_->is_answering(member));
}

// Several are copied to the same memory before the first is sent.
TEST_F(Delivery, AnAnswerThatANewerOneReplacesIsNotSent) {
  start(false, false);
  auto& observer = join(Role::kObserver, 0);
  executor_->pin();
  for (std::uint64_t version : {1u, 2u, 3u}) {
    update();
    to_observer(reply(version));
  }
  executor_->unpin();
  time_.settle();
  ASSERT_EQ(observer.delivered.size(), 1u);
  EXPECT_EQ(observer.delivered[0].version.value, 3u);
  EXPECT_THAT(observer.delivered[0].weights, Each(4));
}

// It requests again when it has reconnected.
TEST_F(Delivery, AMemberWithoutAConnectionGetsNothing) {
  for (const bool in_place : {true, false}) {
    start(in_place, false);
    auto& worker = join(Role::kWorker, 0);
    executor_->pin();
    update();
    to_worker(arena_, reply(1));
    worker.channel.end(Status::closed("cut"));
    time_.settle();
    executor_->unpin();
    time_.settle();
    EXPECT_THAT(clients_.back()->delivered, IsEmpty());
    EXPECT_THAT(weights_, Each(2)) << "and nothing waits for it";
  }
}

}  // namespace
}  // namespace capstan::server
