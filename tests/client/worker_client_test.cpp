// A worker's client against servers that answer as a test specifies.

#include "capstan/client/worker_client.h"

#include <map>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/transport/loopback/loopback.h"
#include "support/eventually.h"

namespace capstan::client {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// One server on a thread of its own. Its answers are made on that thread.
class ScriptedServer final : private cluster::Channel::Events {
 public:
  // The answer to a message, if any; with a payload of so many floats, or with a segment.
  struct Answer {
    std::optional<wire::Message> message;
    std::size_t payload = 0;
    bool hangs_up = false;
    const transport::Segment* segment = nullptr;
  };
  using Script = std::function<Answer(const wire::Message&)>;

  ScriptedServer(transport::loopback::Network& network, const std::string& address,
                 const cluster::Token& token, Script script)
      : script_(std::move(script)),
        thread_([this, &network, address, token] { run(network, address, token); }) {
    is_ready_.wait(false);
  }
  ~ScriptedServer() override {
    ending_ = true;
    thread_.join();
  }
  // How often something arrived after the client had joined, heartbeats included.
  int arrivals() const { return arrivals_; }

 private:
  void run(transport::loopback::Network& network, const std::string& address, const cluster::Token& token) {
    transport::EventLoop loop;
    const auto listener = network.listen(loop, address, [&](auto connection) {
      cluster::Channel::Events& events = *this;
      channel_ = std::make_unique<cluster::Channel>(cluster::Channel::Side::kAccepting, std::move(connection),
                                                    token, events);
    });
    is_ready_ = true;
    is_ready_.notify_all();
    TimePoint last;
    while (!ending_) {
      loop.run_once(SteadyClock::now() + 10ms);
      if (!has_joined_ || !channel_ || channel_->last_heard() == last) continue;
      last = channel_->last_heard();
      ++arrivals_;
    }
    channel_.reset();
  }
  void on_trusted(cluster::Channel&) override {}
  transport::Placement on_payload(cluster::Channel&, const wire::Message&, std::size_t) override {
    return transport::Placement::discard();
  }
  void on_message(cluster::Channel& channel, cluster::Arrival arrival) override {
    const auto answer = script_(arrival.message);
    has_joined_ |= std::holds_alternative<wire::Join>(arrival.message);
    if (answer.hangs_up) channel.close();
    if (!answer.message) return;
    if (answer.segment) return channel.send(*answer.message, *answer.segment);
    if (answer.payload == 0) return channel.send(*answer.message);
    const auto zeros = std::make_shared<std::vector<float>>(answer.payload);
    channel.send(*answer.message, *zeros, [zeros](Status) {});
  }
  void on_end(cluster::Channel&, Status) override {}

  const Script script_;
  std::atomic<bool> is_ready_ = false, ending_ = false;
  std::atomic<int> arrivals_ = 0;
  bool has_joined_ = false;
  std::unique_ptr<cluster::Channel> channel_;
  std::thread thread_;
};

class Worker : public ::testing::Test {
 protected:
  wire::Joined joined(std::uint64_t begin, std::uint64_t end, std::uint32_t servers = 1,
                      std::uint32_t server = 0) const {
    wire::Joined j;
    j.member = {wire::Role::kWorker, 0};
    j.servers = servers;
    j.server = {server};
    j.begin = begin;
    j.end = end;
    j.strategy = "async";
    return j;
  }
  // A server that answers a Join with this.
  static ScriptedServer::Script joins_with(const wire::Joined& answer) {
    return [answer](const wire::Message& message) {
      return std::holds_alternative<wire::Join>(message) ? ScriptedServer::Answer{answer}
                                                         : ScriptedServer::Answer{};
    };
  }
  ScriptedServer& serve(const std::string& address, ScriptedServer::Script script) {
    return *servers_.emplace_back(
        std::make_unique<ScriptedServer>(*network_, address, token_, std::move(script)));
  }
  LinkOptions options(std::vector<std::string> addresses) const {
    LinkOptions o;
    o.servers = std::move(addresses);
    o.token = token_;
    o.index = 0;
    o.connect_timeout = o.silence = testing::kTestTimeout;
    return o;
  }
  Result<std::unique_ptr<WorkerClient>> join(const LinkOptions& o) {
    return WorkerClient::join(
        o, [this](auto& loop, const auto& address) { return network_->connect(loop, address); }, layout_,
        std::vector<float>(layout_.size()));
  }

  const FlatLayout layout_{{{"a", {64}}}};
  const cluster::Token token_ = cluster::Token::generate();
  std::optional<transport::loopback::Network> network_{std::in_place, false};
  std::vector<std::unique_ptr<ScriptedServer>> servers_;
};

TEST_F(Worker, JoinsAServerThatHasTheWholeModel) {
  serve("0", joins_with(joined(0, layout_.size())));
  const auto client = join(options({"0"}));
  ASSERT_TRUE(client) << client.status().message();
  EXPECT_EQ((*client)->weights().size(), layout_.size());
  EXPECT_EQ((*client)->strategy(), "async");
}

TEST_F(Worker, AShardOutsideTheModelIsMalformed) {
  for (const auto& [begin, end] : {std::pair<std::uint64_t, std::uint64_t>{0, 65}, {65, 64}, {3, 2}}) {
    serve("0", joins_with(joined(begin, end)));
    const auto client = join(options({"0"}));
    EXPECT_EQ(client.status().code(), StatusCode::kMalformed);
    EXPECT_EQ(client.status().message(), "a server's shard exceeds the model");
    servers_.clear();
  }
}

TEST_F(Worker, ShardsThatDoNotMakeUpTheModelAreMalformed) {
  serve("0", joins_with(joined(0, 32, 2)));
  serve("1", joins_with(joined(32, 63, 2, 1)));
  const auto client = join(options({"0", "1"}));
  EXPECT_EQ(client.status().code(), StatusCode::kMalformed);
  EXPECT_EQ(client.status().message(), "the servers' shards do not cover the model");
}

TEST_F(Worker, ShardsThatOverlapAreMalformed) {
  serve("0", joins_with(joined(0, 32, 2)));
  serve("1", joins_with(joined(0, 32, 2, 1)));
  const auto client = join(options({"0", "1"}));
  EXPECT_EQ(client.status().code(), StatusCode::kMalformed);
}

TEST_F(Worker, ARankOutsideTheJobIsMalformed) {
  for (const auto& [rank, workers] : {std::pair{0u, 0u}, {2u, 2u}}) {
    auto answer = joined(0, layout_.size());
    answer.member.index = rank;
    answer.workers = workers;
    serve("0", joins_with(answer));
    const auto client = join(options({"0"}));
    EXPECT_EQ(client.status().code(), StatusCode::kMalformed);
    servers_.clear();
  }
  auto answer = joined(0, layout_.size());
  answer.member.role = wire::Role::kObserver;
  serve("0", joins_with(answer));
  EXPECT_EQ(join(options({"0"})).status().code(), StatusCode::kMalformed);
}

TEST_F(Worker, APositionInTheDataThatCannotBeIsMalformed) {
  constexpr auto kHuge = std::uint64_t{1} << 62;
  for (const auto& segment : {wire::DataSegment{0, {1}}, wire::DataSegment{1, {}},
                              wire::DataSegment{kHuge, {1, 1}}, wire::DataSegment{1, {1, kHuge}}}) {
    auto answer = joined(0, layout_.size());
    answer.segments = {{32, {5, 5}}, segment};
    serve("0", joins_with(answer));
    const auto client = join(options({"0"}));
    EXPECT_EQ(client.status().code(), StatusCode::kMalformed);
    servers_.clear();
  }
}

// Payloads are placed by the ranges.
TEST_F(Worker, AServerThatComesBackWithAnotherRangeIsMalformed) {
  for (const bool other_server : {false, true}) {
    std::atomic<int> joins = 0;
    serve("0", [&](const wire::Message& message) -> ScriptedServer::Answer {
      if (std::holds_alternative<wire::Join>(message))
        return {++joins == 1   ? joined(0, layout_.size())
                : other_server ? joined(0, layout_.size(), 1, 7)
                               : joined(64, 1u << 20)};
      if (std::holds_alternative<wire::Pull>(message)) return {{}, 0, joins == 1};
      return {};
    });
    const auto client = join(options({"0"}));
    ASSERT_TRUE(client) << client.status().message();
    const auto update = (*client)->pull();
    ASSERT_FALSE(update);
    EXPECT_EQ(update.status().code(), StatusCode::kMalformed) << update.status().message();
    servers_.clear();
  }
}

TEST_F(Worker, AServerThatIsListedTwiceIsRefused) {
  serve("0", joins_with(joined(0, 32, 2)));
  serve("1", joins_with(joined(32, 64, 2)));
  EXPECT_EQ(join(options({"0", "1"})).status().message(),
            "1: this server is not of the same job, or is listed twice");
}

TEST_F(Worker, AServerOfALargerJobIsRefused) {
  serve("0", joins_with(joined(0, 32, 2)));
  serve("1", joins_with(joined(32, 64, 2, 2)));
  EXPECT_EQ(join(options({"0", "1"})).status().code(), StatusCode::kRefused);
}

TEST_F(Worker, ANumberOfServersThatIsNotTheJobsIsRefused) {
  serve("0", joins_with(joined(0, 64, 3)));
  const auto client = join(options({"0", "1"}));
  EXPECT_EQ(client.status().code(), StatusCode::kRefused);
  EXPECT_EQ(client.status().message(), "0: this job has 3 servers, but 2 were given");
}

TEST_F(Worker, AServerThatIsNotThereIsNamed) {
  auto o = options({"nowhere"});
  o.connect_timeout = 50ms;
  EXPECT_THAT(join(o).status().message(), StartsWith("cannot reach the server at nowhere: "));
}

TEST_F(Worker, AServerThatDoesNotAnswerIsNamed) {
  serve("0", [](const wire::Message&) { return ScriptedServer::Answer{}; });
  auto o = options({"0"});
  o.connect_timeout = 300ms;
  EXPECT_EQ(join(o).status().message(), "cannot reach the server at 0: no answer");
}

TEST_F(Worker, WeightsOfTheWrongSizeEndTheJobForThisWorker) {
  const auto whole = joined(0, layout_.size());
  serve("0", [&](const wire::Message& message) -> ScriptedServer::Answer {
    if (std::holds_alternative<wire::Join>(message)) return {whole};
    if (const auto* pull = std::get_if<wire::Pull>(&message))
      return {wire::Weights{pull->request, {}, {}}, 63};
    return {};
  });
  auto o = options({"0"});
  o.reconnect = 50ms;
  const auto client = join(o);
  ASSERT_TRUE(client) << client.status().message();
  const auto update = (*client)->pull();
  ASSERT_FALSE(update);
  EXPECT_THAT(update.status().message(),
              StartsWith("lost the server at 0: an unexpected payload of 252 bytes"));
}

// The worker reads such weights in the server's memory, which it may not write.
TEST_F(Worker, WeightsInAPayloadAndInASegmentEndTheJobForThisWorker) {
  network_.emplace(true);
  auto whole = joined(0, layout_.size());
  whole.in_place = true;
  const auto segment =
      transport::Segment::create(layout_.size() * sizeof(float), transport::Segment::PeerMay::kRead);
  serve("0", [&](const wire::Message& message) -> ScriptedServer::Answer {
    if (std::holds_alternative<wire::Join>(message)) return {whole, 0, false, &segment};
    if (const auto* pull = std::get_if<wire::Pull>(&message))
      return {wire::Weights{pull->request, {}, {}}, 64};
    return {};
  });
  const auto client = join(options({"0"}));
  ASSERT_TRUE(client) << client.status().message();
  const auto update = (*client)->pull();
  ASSERT_FALSE(update);
  EXPECT_THAT(update.status().message(),
              StartsWith("lost the server at 0: an unexpected payload of 256 bytes"));
}

TEST_F(Worker, LearnsVersionsFromTheAnswers) {
  const auto whole = joined(0, layout_.size());
  serve("0", [&](const wire::Message& message) -> ScriptedServer::Answer {
    if (std::holds_alternative<wire::Join>(message)) return {whole};
    if (const auto* pull = std::get_if<wire::Pull>(&message))
      return {wire::Weights{pull->request, {7}, {}}, 64};
    if (const auto* push = std::get_if<wire::Push>(&message))
      return {wire::Weights{push->sequence.value, {8}, {8}}, 64};
    return {};
  });
  const auto client = join(options({"0"}));
  ASSERT_TRUE(client) << client.status().message();
  const auto pulled = (*client)->pull();
  ASSERT_TRUE(pulled) << pulled.status().message();
  EXPECT_EQ(pulled->version, Version{7});
  const auto pushed = (*client)->push_pull({.samples = 1});
  ASSERT_TRUE(pushed) << pushed.status().message();
  EXPECT_EQ(pushed->version, Version{8});
  EXPECT_EQ(pushed->applied, Version{8});
}

// A server that starts late must not make the others declare the worker lost.
TEST_F(Worker, SendsHeartbeatsToTheFirstServerWhileItWaitsForTheSecond) {
  auto& leader = serve("0", joins_with(joined(0, 32, 2)));
  serve("1", joins_with(joined(32, 64, 2, 1)));
  const auto client = WorkerClient::join(
      options({"0", "1"}),
      [&](transport::EventLoop& loop,
          const std::string& address) -> Result<std::unique_ptr<transport::Connection>> {
        if (address == "1" && leader.arrivals() < 4) return Status::unavailable("still starting");
        return network_->connect(loop, address);
      },
      layout_, std::vector<float>(layout_.size()));
  EXPECT_TRUE(client) << client.status().message();
  EXPECT_GE(leader.arrivals(), 4);
}

}  // namespace
}  // namespace capstan::client
