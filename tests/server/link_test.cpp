// A member's link to a server: connecting, joining, waiting for a server that starts, reconnecting.

#include "capstan/cluster/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/cluster/pause_detector.h"
#include "capstan/transport/loopback/loopback.h"
#include "support/fake_clock.h"

namespace capstan::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Accepts every client.
class WillingServer final : public Channel::Events {
 public:
  WillingServer(transport::loopback::Network& network, transport::EventLoop& loop, const Token& token)
      : listener_(network.listen(loop, "server", [this, token](auto connection) {
          channels.push_back(
              std::make_unique<Channel>(Channel::Side::kAccepting, std::move(connection), token, *this));
        })) {}

  std::vector<std::unique_ptr<Channel>> channels;
  std::string refusal;
  bool answers = true;

 private:
  void on_trusted(Channel&) override {}
  transport::Placement on_payload(Channel&, const wire::Message&, std::size_t) override {
    return transport::Placement::discard();
  }
  void on_message(Channel& channel, Arrival arrival) override {
    if (!std::holds_alternative<wire::Join>(arrival.message) || !answers) return;
    if (!refusal.empty()) return channel.refuse(refusal);
    channel.send(wire::Joined{});
  }
  void on_end(Channel&, Status) override {}

  std::unique_ptr<transport::Listener> listener_;
};

class LinkTest : public ::testing::Test, private Link::Events {
 protected:
  void start(bool share_memory = false, Duration reconnect = 900ms) {
    network_.emplace(share_memory);
    server_.emplace(*network_, time_.loop(), token_);
    Link::Events& events = *this;
    link_.emplace(
        time_.loop(), Link::Options{.token = token_, .silence = 3s, .reconnect = reconnect},
        [this]() -> Result<std::unique_ptr<transport::Connection>> {
          attempts_.push_back(time_.now());
          if (time_.now() < away_until_) return Status::unavailable("nothing listens there");
          return network_->connect(time_.loop(), "server");
        },
        events);
    began_ = time_.now();
  }
  void open(Duration timeout = 10s) {
    link_->open(time_.now() + timeout);
    time_.settle();
  }
  void break_connection() {
    for (auto& channel : server_->channels) channel->close();
    time_.settle();
  }

  testing::FakeTime time_;
  const Token token_ = Token::generate();
  std::optional<transport::loopback::Network> network_;
  std::optional<WillingServer> server_;
  std::optional<Link> link_;
  TimePoint began_, away_until_;
  std::vector<TimePoint> attempts_;
  std::vector<bool> joined_;  // again?
  std::optional<Status> lost_;

 private:
  wire::Join make_join() override { return {}; }
  transport::Placement on_payload(Link&, const wire::Message&, std::size_t) override {
    return transport::Placement::discard();
  }
  void on_message(Link&, const wire::Message&) override {}
  void on_joined(Link&, std::optional<transport::Segment>, bool again) override { joined_.push_back(again); }
  void on_lost(Link&, Status why) override { lost_ = std::move(why); }
};

TEST_F(LinkTest, JoinsAServerThatIsThere) {
  start();
  open();
  EXPECT_THAT(joined_, ::testing::ElementsAre(false));
  EXPECT_TRUE(link_->is_joined());
  EXPECT_EQ(attempts_.size(), 1u);
}

TEST_F(LinkTest, TriesAgainWhileTheServerStarts) {
  start();
  away_until_ = began_ + 300ms;
  open();
  time_.pass(299ms);
  EXPECT_TRUE(joined_.empty());
  time_.pass(50ms);
  EXPECT_THAT(joined_, ::testing::ElementsAre(false));
  EXPECT_FALSE(lost_);
}

TEST_F(LinkTest, GivesUpWhenTheTimeIsOver) {
  start();
  away_until_ = TimePoint::max();
  open(1s);
  time_.pass(990ms);
  EXPECT_FALSE(lost_);
  time_.pass(50ms);
  ASSERT_TRUE(lost_);
  EXPECT_THAT(lost_->message(), HasSubstr("nothing listens there"));
  EXPECT_EQ(link_->state(), Link::State::kEnded);
  const auto attempts = attempts_.size();
  time_.pass(1s);
  EXPECT_EQ(attempts_.size(), attempts) << "not one more";
}

TEST_F(LinkTest, WaitsTwiceAsLongForTheNextAnswer) {
  start();
  server_->answers = false;
  open(1min);
  time_.pass(20s);
  ASSERT_GE(attempts_.size(), 4u);
  EXPECT_EQ(attempts_[1] - attempts_[0], 2s + 20ms);
  EXPECT_EQ(attempts_[2] - attempts_[1], 4s + 20ms);
  EXPECT_EQ(attempts_[3] - attempts_[2], 8s + 20ms);
}

TEST_F(LinkTest, ARefusalIsFinal) {
  start();
  server_->refusal = "another model";
  open();
  ASSERT_TRUE(lost_);
  EXPECT_EQ(lost_->code(), StatusCode::kRefused);
  EXPECT_EQ(lost_->message(), "another model");
  time_.pass(5s);
  EXPECT_EQ(attempts_.size(), 1u);
}

TEST_F(LinkTest, ComesBackAfterABreak) {
  start();
  open();
  break_connection();
  EXPECT_EQ(link_->state(), Link::State::kWaiting);
  time_.pass(100ms);
  EXPECT_THAT(joined_, ::testing::ElementsAre(false, true));
  EXPECT_FALSE(lost_);
}

TEST_F(LinkTest, IsLostWhenABreakLastsTooLong) {
  start();
  open();
  away_until_ = time_.now() + 2s;
  break_connection();
  time_.pass(890ms);
  EXPECT_FALSE(lost_);
  time_.pass(50ms);
  EXPECT_TRUE(lost_);
}

TEST_F(LinkTest, OnOneHostABreakIsTheEndOfTheProcess) {
  start(true);
  open();
  break_connection();
  EXPECT_TRUE(lost_);
  EXPECT_EQ(attempts_.size(), 1u);
}

TEST_F(LinkTest, WithoutReconnectionABreakIsTheEnd) {
  start(false, 0s);
  open();
  break_connection();
  EXPECT_TRUE(lost_);
}

TEST_F(LinkTest, AnEndThatIsExpectedIsNoLoss) {
  start();
  open();
  link_->expect_end();
  break_connection();
  time_.pass(5s);
  EXPECT_FALSE(lost_);
  EXPECT_EQ(attempts_.size(), 1u);
}

TEST_F(LinkTest, ASilentServerIsLostUnlessThisProcessWasPaused) {
  start();
  open();
  time_.jump(4s);
  const auto resumed = time_.now();
  link_->beat(resumed);
  EXPECT_FALSE(lost_) << "no server's messages could be read";
  time_.jump(2900ms);
  link_->beat(resumed);
  EXPECT_FALSE(lost_) << "the server has its whole time after the pause";
  time_.jump(200ms);
  link_->beat(resumed);
  ASSERT_TRUE(lost_);
  EXPECT_EQ(lost_->message(), "no heartbeat for 7.1 s");
}

TEST(PauseDetector, SeesAGapOfThreeIntervals) {
  TimePoint now{}, began = now;
  PauseDetector pauses(100ms, now);
  EXPECT_EQ(pauses.running_since(now += 100ms), began);
  EXPECT_EQ(pauses.running_since(now += 299ms), began);
  now += 300ms;
  EXPECT_EQ(pauses.running_since(now), now);
  EXPECT_EQ(pauses.running_since(now + 100ms), now) << "since the end of the pause";
}

}  // namespace
}  // namespace capstan::cluster
