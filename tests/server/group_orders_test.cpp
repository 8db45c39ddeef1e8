// A follower whose leader sends invalid terms or orders: it reports an error and ends.

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
           wire::Joined joined, wire::Message order)
      : joined_(std::move(joined)),
        order_(std::move(order)),
        listener_(network.listen(loop, "leader", [this, token](auto connection) {
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
    channel.send(joined_);
    channel.send(order_);
    channel.send(wire::StopRequest{"finished"});  // orders are executed in sequence
  }
  void on_end(cluster::Channel&, Status) override {}

  const wire::Joined joined_;
  const wire::Message order_;
  std::unique_ptr<cluster::Channel> channel_;
  std::unique_ptr<transport::Listener> listener_;
};

wire::Joined second_of_two() {
  wire::Joined joined;
  joined.member = {wire::Role::kServer, 1};
  joined.servers = 2;
  joined.strategy = "default=sync,fc*=async";
  return joined;
}

// The error that a follower reports after these terms and one order; empty if it continues to the end of the
// job.
std::string complaint(const wire::Message& order, const wire::Joined& joined = second_of_two()) {
  transport::EventLoop loop;
  transport::loopback::Network network(false);
  ServerOptions options;
  options.members.token = cluster::Token::generate();
  options.connect_to_leader = [&] { return network.connect(loop, "leader"); };
  std::ostringstream said;
  const auto log =
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said));
  const OneOrder leader(network, loop, options.members.token, joined, order);
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

TEST(AFollower, EndsAtTermsThatItCannotHave) {
  const auto complaint_about = [](const auto& change) {
    auto joined = second_of_two();
    change(joined);
    return complaint(wire::Gone{{wire::Role::kWorker, 0}, {1}, true}, joined);
  };
  EXPECT_EQ(complaint_about([](wire::Joined&) {}), "");
  EXPECT_THAT(complaint_about([](auto& joined) { joined.member.index = 2; }),
              HasSubstr("this server became server 2 of a job with 2 servers"));
  EXPECT_THAT(complaint_about([](auto& joined) { joined.member.index = 0; }), HasSubstr("became server 0"));
  EXPECT_THAT(complaint_about([](auto& joined) { joined.member.role = wire::Role::kWorker; }),
              HasSubstr("became worker 1"));
  EXPECT_THAT(complaint_about([](auto& joined) { joined.servers = 0; }), HasSubstr("with 0 servers"));
  EXPECT_THAT(complaint_about([](auto& joined) { joined.servers = 4'000'000'000; }), HasSubstr("at most"));
  EXPECT_THAT(complaint_about([](auto& joined) { joined.workers = 0; }), HasSubstr("at most"));
  EXPECT_THAT(complaint_about([](auto& joined) { joined.strategy = "sinc"; }), HasSubstr("sinc"));
  EXPECT_THAT(complaint_about([](auto& joined) {
                joined.layout = {{"a", {3}}};
                joined.phases = {{"p\n", {"a"}}, {"q", {"a"}}};
              }),
              HasSubstr("the name of a phase"));
}

}  // namespace
}  // namespace capstan::server
