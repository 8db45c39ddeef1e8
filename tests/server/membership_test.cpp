// Which peers may join: wrong tokens, wrong models, wrong ranks and bad bytes end their own connection, and
// the job continues.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/raw_worker.h"

namespace capstan {
namespace {

using namespace std::chrono_literals;
using server::Server;
using testing::eventually;
using testing::FakeCluster;
using ::testing::HasSubstr;
using testing::LoopbackCluster;
using testing::RawPeer;
using namespace testing::play;

void expect_job_continues(LoopbackCluster& cluster, std::uint32_t workers, std::uint64_t steps = 6) {
  for (const auto& weights : run(cluster, workers, steps)) expect_near(weights, reference(workers, steps));
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
  for (const auto& row : cluster.report().workers) EXPECT_EQ(row.state, wire::WorkerState::kLeft);
}

Status join_error(const client::LinkOptions& options, const client::Connector& connector,
                  const FlatLayout& layout) {
  const auto client =
      client::WorkerClient::join(options, connector, layout, std::vector<float>(layout.size()));
  return client.status();
}

wire::WorkerState state_of(client::Observer& observer, std::size_t rank) {
  const auto status = observer.status();
  return status ? status->workers.at(rank).state : wire::WorkerState{};
}

TEST(Membership, AWrongTokenIsRefused) {
  LoopbackCluster cluster(true, patient(2));
  auto options = cluster.worker_options(0);
  options.token = cluster::Token::generate();
  const auto status = join_error(options, cluster.connector(), small_layout());
  EXPECT_EQ(status.code(), StatusCode::kRefused);
  EXPECT_THAT(status.message(), HasSubstr("wrong job token"));
  const auto observer = client::Observer::join(options, cluster.connector());
  EXPECT_EQ(observer.status().code(), StatusCode::kRefused);
  expect_job_continues(cluster, 2);
}

TEST(Membership, AnotherModelIsRefusedByTheTensorsName) {
  for (std::uint32_t servers : {1u, 2u}) {
    LoopbackCluster cluster(true, patient(2, servers));
    std::thread first(
        [&] { expect_near(run_worker(cluster, cluster.connector(), 0, 6).weights, reference(2, 6)); });
    // The first worker sets the layout, so the other model must join second.
    auto observer = client::Observer::join(cluster.link_options(), cluster.connector());
    ASSERT_TRUE(observer);
    ASSERT_TRUE(eventually([&] { return state_of(**observer, 0) == wire::WorkerState::kLive; }));
    const FlatLayout other({{"a", {300, 7}}, {"b", {6}}, {"c", {64, 64}}});
    const auto status = join_error(cluster.worker_options(1), cluster.connector(), other);
    EXPECT_EQ(status.code(), StatusCode::kRefused);
    EXPECT_THAT(status.message(), HasSubstr("tensor b is 5 here and 6 there"));
    expect_near(run_worker(cluster, cluster.connector(), 1, 6).weights, reference(2, 6));
    first.join();
    observer->reset();
    EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
  }
}

TEST(Membership, RanksThatDoNotExistAreRefused) {
  LoopbackCluster cluster(true, patient(2));
  const auto status = join_error(cluster.worker_options(2), cluster.connector(), small_layout());
  EXPECT_THAT(status.message(), HasSubstr("worker 2 does not exist: this job has 2 workers, from 0"));
  expect_job_continues(cluster, 2);
}

TEST(Membership, ARankInUseIsRefused) {
  LoopbackCluster cluster(false, patient(2));
  auto first = client::WorkerClient::join(cluster.worker_options(1), cluster.connector(), small_layout(),
                                          initial_weights(small_layout()));
  ASSERT_TRUE(first);
  const auto status = join_error(cluster.worker_options(1), cluster.connector(), small_layout());
  EXPECT_EQ(status.code(), StatusCode::kRefused);
  EXPECT_THAT(status.message(), HasSubstr("worker 1 has already joined"));
}

TEST(Membership, WorkersWithoutARankGetTheLowestFreeOne) {
  LoopbackCluster cluster(true, patient(3));
  RawPeer one(cluster.network(), "0"), zero(cluster.network(), "0"), two(cluster.network(), "0"),
      four(cluster.network(), "0");
  EXPECT_EQ(one.join(cluster.token(), worker_join(1, 1))->member.index, 1u);
  EXPECT_EQ(zero.join(cluster.token(), worker_join({}, 2))->member.index, 0u);
  EXPECT_EQ(two.join(cluster.token(), worker_join({}, 3))->member.index, 2u);
  EXPECT_FALSE(four.join(cluster.token(), worker_join({}, 4)));
}

TEST(Membership, AWorkerThatHasLeftMayNotJoinAgain) {
  LoopbackCluster cluster(true, patient(2, 1, "async"));
  RawPeer other(cluster.network(), "0");
  ASSERT_TRUE(other.join(cluster.token(), worker_join(1)));
  begin_job(other);
  const auto history = run_worker(cluster, cluster.connector(), 0, 2);
  ASSERT_TRUE(history.failure) << history.failure.message();
  auto observer = client::Observer::join(cluster.link_options(), cluster.connector());
  ASSERT_TRUE(observer);
  ASSERT_TRUE(eventually([&] { return state_of(**observer, 0) == wire::WorkerState::kLeft; }));
  const auto status = join_error(cluster.worker_options(0), cluster.connector(), small_layout());
  EXPECT_THAT(status.message(), HasSubstr("worker 0 has finished its part"));
}

TEST(Membership, ANumberOfServersThatIsNotTheJobsIsRefused) {
  LoopbackCluster cluster(true, patient(1, 2));
  auto options = cluster.worker_options(0);
  options.servers.pop_back();
  EXPECT_THAT(join_error(options, cluster.connector(), small_layout()).message(),
              HasSubstr("this job has 2 servers"));
}

// The server keeps 64 connections that have not joined; the oldest make room for newer ones.
TEST(Membership, ManyConnectionsThatDoNotJoinKeepNoWorkerOut) {
  FakeCluster cluster(false, job(1, 1, "sync"));
  std::vector<std::unique_ptr<RawPeer>> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(std::make_unique<RawPeer>(cluster, "0"));
  cluster.time().settle();
  const auto closed = [&] {
    return std::ranges::count_if(idle, [](const auto& peer) { return peer->is_closed(); });
  };
  EXPECT_EQ(closed(), 100 - 64);
  ManualWorker worker(cluster, 0);
  EXPECT_EQ(closed(), 100 - 64 + 1);
  ASSERT_TRUE(worker.pull());
  worker.initialize();
  ASSERT_TRUE(worker.answer());
  for (std::uint64_t step = 0; step < 3; ++step) ASSERT_TRUE(worker.push(step));
  expect_near(cluster.weights(), reference(1, 3));
}

TEST(Membership, BadBytesFromAPeerThatHasNotJoinedEndItsConnectionOnly) {
  LoopbackCluster cluster(true, patient(2));
  const std::vector<std::vector<std::byte>> bad = {
      {},
      {std::byte{0xff}, std::byte{0xff}},
      std::vector<std::byte>(1000, std::byte{0x41}),
      wire::encode(wire::Heartbeat{}),
      wire::encode(worker_join(0)),
      wire::encode(wire::Push{}),
  };
  for (const auto& bytes : bad) {
    RawPeer peer(cluster.network(), "0");
    peer.send_bytes(bytes);
    EXPECT_TRUE(peer.wait_closed());
  }
  for (const std::size_t size : {0, 1, 7, 8}) {
    RawPeer peer(cluster.network(), "0");
    peer.send_frame(std::vector<std::byte>(size));
    EXPECT_TRUE(peer.wait_closed()) << size;
  }
  RawPeer wrong_protocol(cluster.network(), "0");
  wire::Hello hello;
  hello.protocol = 77;
  wrong_protocol.send(hello);
  EXPECT_THAT(wrong_protocol.wait_closed().value_or(""), HasSubstr("protocol 9 here and 77 there"));
  expect_job_continues(cluster, 2);
}

TEST(Membership, BadBytesFromAMemberEndItsConnectionOnly) {
  LoopbackCluster cluster(true, patient(2));
  auto truncated = wire::encode(wire::Push{});
  truncated.pop_back();
  const std::vector<std::vector<std::byte>> bad = {
      {std::byte{0xff}, std::byte{0xff}}, truncated,
      wire::encode(wire::Join{}),         wire::encode(wire::Initialize{}),
      wire::encode(wire::Initialized{}),  wire::encode(wire::ApplyOrder{}),
      wire::encode(wire::Staged{}),       wire::encode(wire::Share{}),
      wire::encode(wire::Push{}),
  };
  for (const auto& bytes : bad) {
    RawPeer peer(cluster.network(), "0");
    ASSERT_TRUE(peer.join(cluster.token(), {wire::Role::kObserver, {}, {1}, {}}));
    peer.send_bytes(bytes);
    EXPECT_TRUE(peer.wait_closed()) << "message " << static_cast<int>(bytes[0]);
  }
  expect_job_continues(cluster, 2);
}

// The silent worker was asked for the initial weights, too: the other one is asked instead.
TEST(Membership, AMemberThatGoesSilentIsLost) {
  for (std::uint32_t servers : {1u, 2u}) {
    auto options = job(2, servers, "sync");
    options.members.silence = 1500ms;
    FakeCluster cluster(false, options);
    ManualWorker silent(cluster, 1), honest(cluster, 0);
    EXPECT_TRUE(silent.pull());
    EXPECT_FALSE(honest.pull());
    ManualWorker::pass(cluster, 1400ms, {&honest});
    EXPECT_FALSE(silent.at(0).is_closed());
    ManualWorker::pass(cluster, 300ms, {&honest});
    for (std::size_t s = 0; s < servers; ++s) EXPECT_TRUE(silent.at(s).is_closed()) << "server " << s;
    EXPECT_EQ(cluster.server().status().workers[1].state, wire::WorkerState::kLost);
    ASSERT_TRUE(honest.at(0).next<wire::SendWeights>());
    honest.initialize();
    ASSERT_TRUE(honest.answer());
    for (std::uint64_t step = 0; step < 5; ++step) ASSERT_TRUE(honest.push(step));
    honest.leave();
    EXPECT_EQ(cluster.server().outcome(), Server::Outcome::kFinished);
    expect_near(cluster.weights(), reference(1, 5));
  }
}

// The first worker is asked for the weights and is lost before it answers.
TEST(Membership, AnotherIsAskedWhenTheInitialiserIsLost) {
  for (std::uint32_t servers : {1u, 2u}) {
    LoopbackCluster cluster(true, patient(2, servers));
    {
      RawPeer peer(cluster.network(), "0");
      ASSERT_TRUE(peer.join(cluster.token(), worker_join(0)));
      peer.send(wire::Pull{});
      ASSERT_TRUE(peer.next<wire::SendWeights>());
    }
    const auto history = run_worker(cluster, cluster.connector(), 1, 5);
    EXPECT_TRUE(history.failure) << history.failure.message();
    EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
    EXPECT_EQ(history.applied.size(), 5u);
    expect_near(cluster.weights(), replay({{}, history}));
  }
}

TEST(Membership, AnInitialiserThatComesBackAsAnotherIsAskedAgain) {
  LoopbackCluster cluster(true, patient(2));
  {
    RawPeer peer(cluster.network(), "0");
    ASSERT_TRUE(peer.join(cluster.token(), worker_join(0)));
    peer.send(wire::Pull{});
    ASSERT_TRUE(peer.next<wire::SendWeights>());
  }
  const auto back = join_in_time(cluster, "0", worker_join(0, 2));
  ASSERT_TRUE(back);
  back->send(wire::Pull{});
  EXPECT_TRUE(back->next<wire::SendWeights>());
}

TEST(Membership, WorkersThatNeverComeAreLeftOut) {
  auto options = job(3, 1, "sync");
  options.join_timeout = 10s;
  FakeCluster cluster(false, options);
  ManualWorker undecided(cluster, 1), worker(cluster, 0);  // the first joins, but never pulls
  ASSERT_TRUE(worker.pull());
  worker.initialize();
  ManualWorker::pass(cluster, 9700ms, {&undecided, &worker});
  EXPECT_FALSE(worker.answer());
  EXPECT_FALSE(undecided.at(0).is_closed());
  ManualWorker::pass(cluster, 400ms, {&undecided, &worker});
  EXPECT_TRUE(undecided.at(0).is_closed());
  ASSERT_TRUE(worker.answer());
  for (std::uint64_t step = 0; step < 5; ++step) ASSERT_TRUE(worker.push(step));
  worker.leave();
  EXPECT_EQ(cluster.server().outcome(), Server::Outcome::kFinished);
  expect_near(cluster.weights(), reference(1, 5));
}

TEST(Membership, AJobThatNoWorkerJoinsEnds) {
  auto options = job(2, 1, "sync");
  options.join_timeout = 10s;
  FakeCluster cluster(true, options);
  cluster.time().pass(9700ms);
  EXPECT_EQ(cluster.server().outcome(), Server::Outcome::kRunning);
  cluster.time().pass(400ms);
  EXPECT_EQ(cluster.server().outcome(), Server::Outcome::kAllWorkersLost);
}

// An observer has no weights to send.
TEST(Membership, InitialWeightsComeFromWorkersOnly) {
  LoopbackCluster cluster(true, patient(2));
  RawPeer peer(cluster.network(), "0");
  ASSERT_TRUE(peer.join(cluster.token(), {wire::Role::kObserver, {}, {1}, {}}));
  peer.send(wire::Pull{1, {}});
  peer.send(wire::Initialize{});
  EXPECT_TRUE(peer.wait_closed());
  expect_job_continues(cluster, 2);
}

// "Not yet" is not a refusal: the connection ends without a reason, and the client retries.
TEST(Membership, AFollowerWithoutItsLeaderAdmitsNoClientYet) {
  testing::FakeTime time;
  transport::loopback::Network network(true);
  auto options = job(1, 2, "sync");
  options.members.token = cluster::Token::generate();
  options.connect_to_leader = []() -> Result<std::unique_ptr<transport::Connection>> {
    return Status::unavailable("still starting");
  };
  Server server(time.loop(), options, testing::silent_log());
  const auto listener =
      network.listen(time.loop(), "1", [&](auto connection) { server.accept(std::move(connection)); });
  RawPeer peer(network, "1", time);
  EXPECT_TRUE(peer.shake_hands(options.members.token));
  peer.send(worker_join(0));
  EXPECT_FALSE(peer.next<wire::Refused>());
  EXPECT_TRUE(peer.is_closed());
}

// The connection ends without a reason: a client tries again.
bool is_put_off(RawPeer& peer, const FakeCluster& cluster, const wire::Join& join) {
  EXPECT_TRUE(peer.shake_hands(cluster.token()));
  peer.send(join);
  return !peer.next<wire::Refused>() && peer.is_closed();
}

TEST(Membership, AFollowerTakesNoModelFromAWorkerThatTheLeaderHasNotAdmitted) {
  FakeCluster cluster(false, job(1, 2, "sync"));
  auto other = worker_join(0, 9);
  other.layout = wire::to_wire(FlatLayout({{"other", {5}}}));
  RawPeer unknown(cluster, "1");
  EXPECT_TRUE(is_put_off(unknown, cluster, other));
  ManualWorker worker(cluster, 0);
  EXPECT_TRUE(worker.pull());
  worker.initialize();
  EXPECT_TRUE(worker.push(0));
}

TEST(Membership, AWorkerRestartedAtOnceIsPutOffUntilItsPredecessorIsLost) {
  for (const auto rank : {std::optional<std::uint32_t>(0), std::optional<std::uint32_t>()}) {
    FakeCluster cluster(false, job(2, 1, "sync"));
    std::optional<RawPeer> old(std::in_place, cluster, "0");
    ASSERT_TRUE(old->join(cluster.token(), worker_join(0, 1)));
    ManualWorker other(cluster, 1);
    {
      RawPeer second(cluster, "0");
      ASSERT_TRUE(second.shake_hands(cluster.token()));
      second.send(worker_join(rank, 2));
      EXPECT_TRUE(second.next<wire::Refused>()) << "the first is connected";
    }
    old.reset();
    cluster.time().settle();
    RawPeer early(cluster, "0");
    EXPECT_TRUE(is_put_off(early, cluster, worker_join(rank, 3)));
    ManualWorker::pass(cluster, 1100ms, {&other});
    RawPeer late(cluster, "0");
    const auto joined = late.join(cluster.token(), worker_join(rank, 3));
    ASSERT_TRUE(joined);
    EXPECT_EQ(joined->member.index, 0u);
  }
}

TEST(Membership, AWorkerWhosePredecessorIsSilentIsPutOff) {
  auto options = job(1, 1, "sync");
  options.members.silence = 1500ms;
  FakeCluster cluster(false, options);
  RawPeer old(cluster, "0");
  ASSERT_TRUE(old.join(cluster.token(), worker_join(0, 1)));
  cluster.time().pass(1s, 100ms);
  RawPeer early(cluster, "0");
  EXPECT_TRUE(is_put_off(early, cluster, worker_join(0, 2)));
}

TEST(Membership, AnObserverDoesNotTakeOverAnothersConnection) {
  FakeCluster cluster(false, job(1, 2, "sync"));
  const auto observer_join = [](std::optional<std::uint32_t> index, std::uint64_t incarnation) {
    return wire::Join{wire::Role::kObserver, index, {incarnation}, {}};
  };
  RawPeer first(cluster, "0"), first_at_follower(cluster, "1");
  ASSERT_TRUE(first.join(cluster.token(), observer_join({}, 1)));
  ASSERT_TRUE(first_at_follower.join(cluster.token(), observer_join(0, 1)));
  RawPeer second(cluster, "0"), second_at_follower(cluster, "1");
  const auto joined = second.join(cluster.token(), observer_join(0, 2));
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->member.index, 1u);
  EXPECT_FALSE(second_at_follower.join(cluster.token(), observer_join(0, 2)));
  cluster.time().settle();
  EXPECT_FALSE(first.is_closed());
  EXPECT_FALSE(first_at_follower.is_closed());
}

TEST(Membership, AnObserverMayReportADeadWorker) {
  LoopbackCluster cluster(false, patient(2));
  auto observer = client::Observer::join(cluster.link_options(), cluster.connector());
  ASSERT_TRUE(observer);
  (*observer)->worker_died({1});
  const auto history = run_worker(cluster, cluster.connector(), 0, 5);
  EXPECT_TRUE(history.failure) << history.failure.message();
  observer->reset();
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
  EXPECT_EQ(cluster.report().workers[1].state, wire::WorkerState::kLost);
  expect_near(cluster.weights(), reference(1, 5));
}

// The server defines the job; a member with a contradicting configuration is refused before it starts.
TEST(Membership, MembersLearnTheJob) {
  auto options = patient(1, 2);
  options.description.text = "epochs = 3";
  options.description.contradictions = [](const std::string& theirs) {
    return theirs == "epochs = 3" ? "" : "--epochs 5: the job has 3";
  };
  LoopbackCluster cluster(false, options);
  auto link = cluster.link_options();
  const auto fetched = client::Observer::fetch_job(link, cluster.connector());
  ASSERT_TRUE(fetched) << fetched.status().message();
  EXPECT_EQ(*fetched, "epochs = 3");
  link.job = "epochs = 5";
  const auto refused = client::Observer::fetch_job(link, cluster.connector());
  EXPECT_EQ(refused.status().code(), StatusCode::kRefused);
  EXPECT_THAT(refused.status().message(), HasSubstr("--epochs 5: the job has 3"));
  auto worker = cluster.worker_options(0);
  worker.job = "epochs = 5";
  EXPECT_EQ(join_error(worker, cluster.connector(), small_layout()).code(), StatusCode::kRefused);
  const auto history = run_worker(cluster, cluster.connector(), 0, 5);
  EXPECT_TRUE(history.failure) << history.failure.message();
}

}  // namespace
}  // namespace capstan
