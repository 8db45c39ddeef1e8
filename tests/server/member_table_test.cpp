// Which members are connected, broken or lost, with a fake clock.

#include "capstan/server/member_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>

#include "capstan/transport/loopback/loopback.h"
#include "support/fake_clock.h"

namespace capstan::server {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using wire::Member;

// A client that sends what the test specifies.
class Client final : public cluster::Channel::Events {
 public:
  Client(std::unique_ptr<transport::Connection> connection, const cluster::Token& token)
      : channel(cluster::Channel::Side::kConnecting, std::move(connection), token, *this) {}

  std::vector<std::string> heard;
  std::optional<Status> ended;
  cluster::Channel channel;

 private:
  void on_trusted(cluster::Channel&) override {}
  transport::Placement on_payload(cluster::Channel&, const wire::Message&, std::size_t) override {
    return transport::Placement::discard();
  }
  void on_message(cluster::Channel&, cluster::Arrival arrival) override {
    heard.emplace_back(wire::name_of(arrival.message));
  }
  void on_end(cluster::Channel&, Status why) override { ended = std::move(why); }
};

// Connects, and sends nothing.
class IdlePeer final : public transport::Handler {
 public:
  explicit IdlePeer(std::unique_ptr<transport::Connection> connection) : connection_(std::move(connection)) {
    connection_->set_handler(this);
  }
  bool is_open() const { return connection_->is_open(); }

 private:
  transport::Placement place(transport::Connection&, transport::Bytes, std::size_t) override { return {}; }
  void on_frame(transport::Connection&, transport::Incoming) override {}
  void on_closed(transport::Connection&, Status) override {}

  std::unique_ptr<transport::Connection> connection_;
};

// Forwards to another connection, and counts the objects that exist.
class CountedConnection final : public transport::Connection {
 public:
  CountedConnection(std::unique_ptr<transport::Connection> inner, int& count)
      : inner_(std::move(inner)), count_(count) {
    ++count_;
  }
  ~CountedConnection() override { --count_; }
  void set_handler(transport::Handler* handler) override { inner_->set_handler(handler); }
  void send(transport::Bytes frame) override { inner_->send(frame); }
  void send(transport::Bytes frame, transport::Bytes payload, transport::Sent sent) override {
    inner_->send(frame, payload, std::move(sent));
  }
  void send(transport::Bytes frame, const transport::Segment& segment) override {
    inner_->send(frame, segment);
  }
  bool shares_memory() const override { return inner_->shares_memory(); }
  void close() override { inner_->close(); }
  bool is_open() const override { return inner_->is_open(); }
  TimePoint last_arrival() const override { return inner_->last_arrival(); }
  bool is_mid_payload() const override { return inner_->is_mid_payload(); }
  std::string peer() const override { return inner_->peer(); }
  const char* kind() const override { return inner_->kind(); }

 private:
  std::unique_ptr<transport::Connection> inner_;
  int& count_;
};

class Members : public ::testing::Test, private MemberTable::Events {
 protected:
  void start(bool share_memory = false) {
    options_.token = cluster::Token::generate();
    network_.emplace(share_memory);
    MemberTable::Events& events = *this;
    table_.emplace(time_.loop(), options_,
                   std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_st>()),
                   events);
    listener_ = network_->listen(time_.loop(), "server", [this](auto connection) {
      table_->accept(std::make_unique<CountedConnection>(std::move(connection), connections_));
    });
    tick();
  }
  void tick() {
    table_->tick();
    time_.loop().call_at(time_.now() + MemberTable::kTick, [this] { tick(); });
  }
  std::unique_ptr<transport::Connection> connection() {
    return std::move(*network_->connect(time_.loop(), "server"));
  }
  // A trusted client; it joins if it is given a rank.
  Client& connect(std::optional<std::uint32_t> rank = {}, std::uint64_t incarnation = 1,
                  wire::Role role = wire::Role::kWorker) {
    auto& client = *clients_.emplace_back(std::make_unique<Client>(connection(), options_.token));
    time_.settle();
    if (!rank) return client;
    wire::Join join;
    join.role = role;
    join.index = rank;
    join.incarnation = {incarnation};
    client.channel.send(join);
    time_.settle();
    return client;
  }
  // Time passes, and these clients send heartbeats.
  void pass_with_heartbeats(Duration time, std::initializer_list<Client*> alive) {
    for (const auto end = time_.now() + time; time_.now() < end;) {
      for (auto* client : alive) client->channel.send(wire::Heartbeat{});
      time_.pass(100ms);
    }
  }

  testing::FakeTime time_;
  int connections_ = 0;  // that the server holds
  MemberTable::Options options_;
  std::optional<transport::loopback::Network> network_;
  std::optional<MemberTable> table_;
  std::unique_ptr<transport::Listener> listener_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::string> messages_, lost_;

 private:
  void on_join(Peer& peer, const wire::Join& join) override {
    table_->bind(peer, {join.role, *join.index}, join.incarnation);
    peer.channel().send(wire::Joined{});
  }
  transport::Placement on_payload(Peer&, const wire::Message&, std::size_t) override {
    return transport::Placement::discard();
  }
  void on_message(Peer& peer, cluster::Arrival arrival) override {
    messages_.push_back(describe(*peer.member()) + ": " + wire::name_of(arrival.message));
  }
  void on_lost(const Member& member, Incarnation incarnation, const Status&) override {
    lost_.push_back(describe(member) + " #" + std::to_string(incarnation.value));
  }
};

TEST_F(Members, OnlyMembersArePassedOn) {
  start();
  auto& idle_peer = connect();
  idle_peer.channel.send(wire::Pull{});
  connect(2).channel.send(wire::Pull{});
  time_.settle();
  EXPECT_THAT(messages_, ElementsAre("worker 2: Pull"));
  ASSERT_TRUE(idle_peer.ended);
}

TEST_F(Members, HeartbeatsKeepAMemberAndSilenceLosesIt) {
  start();
  auto &loud = connect(0), &silent = connect(1);
  pass_with_heartbeats(1400ms, {&loud});
  EXPECT_TRUE(lost_.empty());
  pass_with_heartbeats(300ms, {&loud});
  EXPECT_THAT(lost_, ElementsAre("worker 1 #1"));
  ASSERT_TRUE(silent.ended);
  EXPECT_THAT(silent.ended->message(), HasSubstr("no heartbeat for 1.6 s"));
  EXPECT_FALSE(loud.ended);
}

TEST_F(Members, AnObserverMayBeSilentForLonger) {
  start();
  connect(0, 1, wire::Role::kObserver);
  time_.pass(59s, 100ms);
  EXPECT_TRUE(lost_.empty());
  time_.pass(2s, 100ms);
  EXPECT_THAT(lost_, ElementsAre("observer 0 #0"));
}

TEST_F(Members, APauseOfTheServerItselfLosesNoMember) {
  start();
  auto& member = connect(0);
  time_.jump(10s);
  member.channel.send(wire::Heartbeat{});
  time_.settle();
  pass_with_heartbeats(500ms, {&member});
  EXPECT_TRUE(lost_.empty());
}

// It sends its heartbeat every 200 ms, and may have been paused together with the server.
TEST_F(Members, SilenceIsCountedFromTheEndOfAPauseOfTheServer) {
  start();
  auto& broken = connect(1);
  connect(0);
  auto& unjoined = connect();
  broken.channel.close();
  time_.settle();
  time_.jump(10s);
  time_.pass(900ms, 100ms);
  EXPECT_TRUE(lost_.empty());
  time_.pass(200ms, 100ms);
  EXPECT_THAT(lost_, ElementsAre("worker 1 #1"));
  time_.pass(300ms, 100ms);
  EXPECT_EQ(lost_.size(), 1u);
  EXPECT_FALSE(unjoined.ended);
  time_.pass(300ms, 100ms);
  EXPECT_THAT(lost_, ElementsAre("worker 1 #1", "worker 0 #1"));
}

// Counted from the opening: heartbeats give a peer that has not joined no more time.
TEST_F(Members, APeerThatDoesNotJoinInTimeIsRefused) {
  start();
  auto& idle = connect();
  pass_with_heartbeats(4900ms, {&idle});
  EXPECT_FALSE(idle.ended);
  pass_with_heartbeats(300ms, {&idle});
  ASSERT_TRUE(idle.ended);
  EXPECT_EQ(idle.ended->message(), "no Join within 5 s");
}

TEST_F(Members, TooManyPeersThatHaveNotJoinedMakeRoomTheOldestUntrustedFirst) {
  start();
  auto& trusted = connect();
  std::vector<std::unique_ptr<IdlePeer>> idle_peers;
  const auto come = [&](int count) {
    for (int i = 0; i < count; ++i) idle_peers.push_back(std::make_unique<IdlePeer>(connection()));
    time_.settle();
  };
  come(63);
  const auto open = [&] {
    return std::ranges::count_if(idle_peers, [](const auto& s) { return s->is_open(); });
  };
  EXPECT_EQ(open(), 63);
  come(10);
  EXPECT_EQ(open(), 63) << "64 in all, with the trusted one";
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(idle_peers[i]->is_open()) << i;
  EXPECT_FALSE(trusted.ended) << "it connected first, but knows the token";
}

// A connection has large buffers, and many may come and go between two ticks; the clock stands still here.
TEST_F(Members, AConnectionThatHasEndedIsDestroyedAtOnce) {
  start();
  auto& member = connect(0);
  std::vector<std::unique_ptr<IdlePeer>> idle_peers;
  for (int i = 0; i < 100; ++i) idle_peers.push_back(std::make_unique<IdlePeer>(connection()));
  time_.settle();
  EXPECT_EQ(connections_, 1 + 64);
  idle_peers.clear();
  time_.settle();
  EXPECT_EQ(connections_, 1);
  connect(0);
  time_.settle();
  EXPECT_EQ(connections_, 1) << "the new connection of the same member";
  EXPECT_TRUE(member.ended);
}

TEST_F(Members, AMemberNeverMakesRoom) {
  start();
  auto& member = connect(0);
  std::vector<std::unique_ptr<IdlePeer>> idle_peers;
  for (int i = 0; i < 100; ++i) idle_peers.push_back(std::make_unique<IdlePeer>(connection()));
  time_.settle();
  EXPECT_FALSE(member.ended);
}

TEST_F(Members, ABrokenConnectionMayComeBackForASecond) {
  start();
  connect(0).channel.close();
  time_.settle();
  EXPECT_FALSE(table_->find({wire::Role::kWorker, 0}));
  time_.pass(900ms);
  EXPECT_TRUE(lost_.empty());
  auto& back = connect(0);
  pass_with_heartbeats(1s, {&back});
  EXPECT_TRUE(lost_.empty());
  back.channel.close();
  time_.pass(1200ms);
  EXPECT_THAT(lost_, ElementsAre("worker 0 #1")) << "reported once";
  time_.pass(1s);
  EXPECT_EQ(lost_.size(), 1u);
}

TEST_F(Members, OnOneHostABrokenConnectionIsTheEndOfTheProcess) {
  start(true);
  connect(0).channel.close();
  time_.settle();
  EXPECT_THAT(lost_, ElementsAre("worker 0 #1"));
}

TEST_F(Members, ANewConnectionReplacesTheOldOne) {
  start();
  auto& old = connect(0);
  auto& back = connect(0);
  EXPECT_TRUE(old.ended);
  table_->send({wire::Role::kWorker, 0}, wire::SendWeights{});
  time_.settle();
  EXPECT_THAT(back.heard, ElementsAre("Joined", "SendWeights"));
  EXPECT_TRUE(lost_.empty());
}

TEST_F(Members, OneThatLeftIsNotLostAndSaysNothingMore) {
  start();
  auto& worker = connect(0);
  const Member member{wire::Role::kWorker, 0};
  table_->dismiss(*table_->find(member));
  time_.settle();
  EXPECT_THAT(worker.heard, ElementsAre("Joined", "Leave"));
  EXPECT_FALSE(table_->takes_part(member));
  auto& again = connect(0);
  again.channel.send(wire::Pull{});
  time_.settle();
  ASSERT_TRUE(again.ended);
  EXPECT_EQ(again.ended->message(), "received Pull after Leave");
  time_.pass(3s);
  EXPECT_TRUE(lost_.empty());
  EXPECT_TRUE(messages_.empty());
}

TEST_F(Members, ForgettingOneThatIsLostTellsItSo) {
  start();
  auto& worker = connect(0, 5);
  table_->forget(0, {4}, true);
  time_.settle();
  EXPECT_FALSE(worker.ended) << "another incarnation was meant";
  table_->forget(0, {5}, true);
  time_.settle();
  ASSERT_TRUE(worker.ended);
  EXPECT_THAT(worker.ended->message(), HasSubstr("declared this worker lost"));
  EXPECT_TRUE(lost_.empty()) << "the caller knows";
  EXPECT_FALSE(table_->incarnation(0));
}

}  // namespace
}  // namespace capstan::server
