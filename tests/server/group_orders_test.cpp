// A follower and a leader that is not well: orders that name a group which the job has not.

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include "support/loopback_cluster.h"

namespace capstan::server {
namespace {

using ::testing::HasSubstr;

// Takes the follower in, then gives it one order. Owned by the test's loop.
class Leader final : public SessionEvents {
 public:
  Leader(transport::loopback::Network& network, transport::EventLoop& loop, const cluster::Token& token,
         wire::Message order)
      : order_(std::move(order)), listener_(network.listen(loop, "leader", [this, token](auto connection) {
          session_ = std::make_unique<Session>(std::move(connection), token, *this);
        })) {}

  bool has_spoken() const { return spoken_; }

 private:
  void on_join(Session& session, const wire::Join&) override {
    wire::Joined joined;
    joined.member = {wire::Role::kServer, 1};
    joined.servers = 2;
    joined.strategy = "default=sync,fc*=async";
    session.set_member(joined.member);
    session.send(joined);
    session.send(order_);
    spoken_ = true;
  }
  transport::Placement on_payload(Session&, const wire::Message&, std::size_t) override {
    return transport::Placement::refuse();
  }
  void on_message(Session&, Arrival) override {}
  void on_end(Session&, Status) override {}

  const wire::Message order_;
  bool spoken_ = false;
  std::unique_ptr<Session> session_;
  std::unique_ptr<transport::Listener> listener_;
};

// What a follower says of its leader after one order; empty where it goes on.
std::string complaint(const wire::Message& order) {
  transport::EventLoop loop;
  transport::loopback::Network network(false);
  ServerOptions options;
  options.leads = false;
  options.token = cluster::Token::generate();
  std::ostringstream said;
  const auto log =
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said));
  Leader leader(network, loop, options.token, order);
  Server follower(loop, options, log);
  follower.follow([&] { return network.connect(loop, "leader"); });
  // Until it has had the order and a little more, or has ended.
  auto end = SteadyClock::now() + std::chrono::seconds(30);
  for (bool seen = false; SteadyClock::now() < end && follower.outcome() == Server::Outcome::kRunning;) {
    loop.run_once(SteadyClock::now() + std::chrono::milliseconds(10));
    if (!seen && leader.has_spoken()) end = SteadyClock::now() + std::chrono::milliseconds(300), seen = true;
  }
  EXPECT_TRUE(leader.has_spoken());
  EXPECT_EQ(follower.outcome() == Server::Outcome::kLeaderLost, !said.str().empty());
  return said.str();
}

TEST(AFollower, TakesOrdersForTheGroupsOfItsJobOnly) {
  EXPECT_EQ(complaint(wire::DropOrder{{0}, {1}, 0}), "");
  EXPECT_EQ(complaint(wire::DropOrder{{0}, {1}, 1}), "");
  EXPECT_THAT(complaint(wire::DropOrder{{0}, {1}, 2}), HasSubstr("it named group 2 of 2"));
  wire::ApplyOrder apply{{0}, {{{0}, {1}, 1}}};
  apply.group = 2;
  EXPECT_THAT(complaint(apply), HasSubstr("it named group 2 of 2"));
  apply.group = 1;
  EXPECT_THAT(complaint(apply), HasSubstr("a push of worker 0 that is not here"));
  EXPECT_THAT(complaint(wire::AccumulateOrder{{{0}, {1}, 1}, true}), HasSubstr("a job with groups"));
}

}  // namespace
}  // namespace capstan::server
