// One authenticated connection, seen from both ends.

#include "capstan/cluster/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/transport/loopback/loopback.h"
#include "support/fake_clock.h"

namespace capstan::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Records the events of a channel.
class Recorder final : public Channel::Events {
 public:
  int trusted = 0;
  std::vector<std::string> messages;
  std::vector<std::size_t> payloads;
  std::optional<Status> ended;
  std::vector<float> destination;

 private:
  void on_trusted(Channel&) override { ++trusted; }
  transport::Placement on_payload(Channel&, const wire::Message&, std::size_t bytes) override {
    payloads.push_back(bytes);
    destination.resize(bytes / sizeof(float));
    return transport::Placement::receive(std::as_writable_bytes(std::span(destination)));
  }
  void on_message(Channel&, Arrival arrival) override {
    messages.emplace_back(wire::name_of(arrival.message));
  }
  void on_end(Channel&, Status why) override { ended = std::move(why); }
};

class ChannelTest : public ::testing::Test {
 protected:
  ChannelTest()
      : listener_(network_.listen(time_.loop(), "server", [this](auto connection) {
          server_ =
              std::make_unique<Channel>(Channel::Side::kAccepting, std::move(connection), token_, at_server_);
        })) {}

  void connect(const Token& token) {
    client_ = std::make_unique<Channel>(Channel::Side::kConnecting, connection(), token, at_client_);
    time_.settle();
  }
  std::unique_ptr<transport::Connection> connection() {
    return std::move(*network_.connect(time_.loop(), "server"));
  }

  testing::FakeTime time_;
  transport::loopback::Network network_{false};
  const Token token_ = Token::generate();
  Recorder at_server_, at_client_;
  std::unique_ptr<Channel> server_, client_;
  std::unique_ptr<transport::Listener> listener_;
};

TEST_F(ChannelTest, BothEndsTrustEachOtherWithOneToken) {
  connect(token_);
  EXPECT_EQ(at_server_.trusted, 1);
  EXPECT_EQ(at_client_.trusted, 1);
  EXPECT_TRUE(server_->is_trusted() && client_->is_trusted());
}

TEST_F(ChannelTest, AnotherTokenEndsBothEnds) {
  connect(Token::generate());
  EXPECT_EQ(at_server_.trusted + at_client_.trusted, 0);
  ASSERT_TRUE(at_client_.ended && at_server_.ended);
  EXPECT_EQ(at_client_.ended->code(), StatusCode::kRefused);
  EXPECT_THAT(at_client_.ended->message(), HasSubstr("wrong job token"));
  EXPECT_TRUE(server_->has_ended());
}

TEST_F(ChannelTest, NothingButTheHandshakeIsTakenBeforeTrust) {
  Recorder raw;
  for (const wire::Message& message :
       {wire::Message(wire::Pull{}), wire::Message(wire::Heartbeat{}), wire::Message(wire::Join{})}) {
    at_server_ = {};
    auto peer = connection();
    wire::FrameWriter writer;
    peer->send(writer.write(message));
    time_.settle();
    ASSERT_TRUE(at_server_.ended) << wire::name_of(message);
    EXPECT_EQ(at_server_.ended->code(), StatusCode::kMalformed);
    EXPECT_THAT(at_server_.ended->message(), HasSubstr("instead of Hello"));
    EXPECT_TRUE(at_server_.messages.empty());
  }
}

TEST_F(ChannelTest, APayloadBeforeTrustIsRefusedUnread) {
  auto peer = connection();
  wire::FrameWriter writer;
  const std::vector<float> values(16);
  peer->send(writer.write(wire::Initialize{}), std::as_bytes(std::span(values)), [](Status) {});
  time_.settle();
  EXPECT_TRUE(at_server_.payloads.empty());
  EXPECT_TRUE(at_server_.ended);
}

TEST_F(ChannelTest, PassesMessagesAndPayloadsInOrderButNoHeartbeats) {
  connect(token_);
  const std::vector<float> values = {1, 2, 3};
  client_->send(wire::Pull{});
  client_->send(wire::Heartbeat{});
  client_->send(wire::Initialize{}, values, [](Status) {});
  client_->send(wire::Leave{});
  time_.settle();
  EXPECT_THAT(at_server_.messages, ::testing::ElementsAre("Pull", "Initialize", "Leave"));
  EXPECT_EQ(at_server_.destination, values);
}

TEST_F(ChannelTest, ARefusalSaysWhyAtBothEnds) {
  connect(token_);
  server_->refuse("no more room");
  time_.settle();
  for (const auto* end : {&at_server_, &at_client_}) {
    ASSERT_TRUE(end->ended);
    EXPECT_EQ(end->ended->code(), StatusCode::kRefused);
    EXPECT_EQ(end->ended->message(), "no more room");
  }
}

// Any process that listens on a server's port can send a refusal; no token is needed.
TEST_F(ChannelTest, AReasonFromAPeerIsOneShortLineWithoutTerminalEscapes) {
  listener_.reset();
  std::unique_ptr<transport::Connection> raw;
  listener_ = network_.listen(time_.loop(), "server", [&](auto connection) { raw = std::move(connection); });
  connect(token_);
  ASSERT_TRUE(raw);
  wire::FrameWriter writer;
  raw->send(writer.write(wire::Refused{"\x1b[2J\n\u202e" + std::string(10'000, 'x')}));
  time_.settle();
  ASSERT_TRUE(at_client_.ended);
  EXPECT_EQ(at_client_.ended->code(), StatusCode::kRefused);
  EXPECT_THAT(at_client_.ended->message(), ::testing::StartsWith("?[2J ?xxx"));
  EXPECT_LT(at_client_.ended->message().size(), 3'000u);
}

TEST_F(ChannelTest, AnEndWithoutARefusalLetsThePeerTryAgain) {
  connect(token_);
  server_->end(Status::unavailable("not yet"));
  time_.settle();
  ASSERT_TRUE(at_client_.ended);
  EXPECT_EQ(at_client_.ended->code(), StatusCode::kClosed);
}

TEST_F(ChannelTest, CloseIsSilentHere) {
  connect(token_);
  server_->close();
  time_.settle();
  EXPECT_FALSE(at_server_.ended);
  EXPECT_TRUE(at_client_.ended);
}

TEST_F(ChannelTest, IsSilentOnceNothingWasHeardForLonger) {
  connect(token_);
  EXPECT_FALSE(server_->is_silent(time_.now(), 1s));
  time_.pass(1s);
  EXPECT_FALSE(server_->is_silent(time_.now(), 1s));
  time_.pass(1ms);
  EXPECT_TRUE(server_->is_silent(time_.now(), 1s));
  client_->send(wire::Heartbeat{});
  time_.settle();
  EXPECT_FALSE(server_->is_silent(time_.now(), 1s)) << "a heartbeat counts";
}

}  // namespace
}  // namespace capstan::cluster
