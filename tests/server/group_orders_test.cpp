// A follower whose leader gives invalid orders: it reports an error and ends.

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include "capstan/cluster/channel.h"
#include "capstan/server/server.h"
#include "capstan/transport/loopback/loopback.h"

namespace capstan::server {
namespace {

using ::testing::HasSubstr;

// Accepts the follower, then gives it one order. Owned by the test's loop.
class OneOrder final : public cluster::Channel::Events {
 public:
  OneOrder(transport::loopback::Network& network, transport::EventLoop& loop, const cluster::Token& token,
           wire::Message order)
      : order_(std::move(order)), listener_(network.listen(loop, "leader", [this, token](auto connection) {
          channel_ = std::make_unique<cluster::Channel>(cluster::Channel::Side::kAccepting,
                                                        std::move(connection), token, *this);
        })) {}

 private:
  void on_trusted(cluster::Channel&) override {}
  transport::Placement on_payload(cluster::Channel&, const wire::Message&, std::size_t) override {
    return transport::Placement::refuse();
  }
  void on_message(cluster::Channel& channel, cluster::Arrival arrival) override {
    if (!std::holds_alternative<wire::Join>(arrival.message)) return;
    wire::Joined joined;
    joined.member = {wire::Role::kServer, 1};
    joined.servers = 2;
    joined.strategy = "default=sync,fc*=async";
    channel.send(joined);
    channel.send(order_);
    channel.send(wire::StopRequest{"finished"});  // orders are executed in sequence
  }
  void on_end(cluster::Channel&, Status) override {}

  const wire::Message order_;
  std::unique_ptr<cluster::Channel> channel_;
  std::unique_ptr<transport::Listener> listener_;
};

// The error that a follower reports after one order; empty if it continues to the end of the job.
std::string complaint(const wire::Message& order) {
  transport::EventLoop loop;
  transport::loopback::Network network(false);
  ServerOptions options;
  options.members.token = cluster::Token::generate();
  options.connect_to_leader = [&] { return network.connect(loop, "leader"); };
  std::ostringstream said;
  const auto log =
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said));
  const OneOrder leader(network, loop, options.members.token, order);
  const Server follower(loop, options, log);
  const auto give_up = SteadyClock::now() + std::chrono::seconds(30);
  while (SteadyClock::now() < give_up && follower.outcome() == Outcome::kRunning) loop.run_once(give_up);
  EXPECT_EQ(follower.outcome(), said.str().empty() ? Outcome::kFinished : Outcome::kLeaderLost);
  return said.str();
}

TEST(AFollower, ObeysWhatItCanAndEndsAtWhatItCannot) {
  EXPECT_EQ(complaint(wire::Gone{{wire::Role::kWorker, 0}, {1}, true}), "");
  EXPECT_THAT(complaint(wire::DropOrder{{0}, {1}, 0}), HasSubstr("an order before there is a model"));
  EXPECT_THAT(complaint(wire::CheckpointOrder{{1}, "somewhere"}),
              HasSubstr("a checkpoint before there are weights"));
  EXPECT_THAT(complaint(wire::Pull{}), HasSubstr("its order cannot be executed: unexpected Pull"));
}

}  // namespace
}  // namespace capstan::server
