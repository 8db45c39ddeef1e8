// Unreliable networks: connections that break and are restored, messages that are delayed or duplicated.
// Every push still counts exactly once.

#include <gtest/gtest.h>

#include "server/raw_worker.h"

namespace capstan {
namespace {

using namespace std::chrono_literals;
using server::Server;
using testing::eventually;
using testing::FakeCluster;
using testing::LoopbackCluster;
using testing::RawPeer;
using transport::faulty::Faults;
using namespace testing::play;

constexpr std::uint64_t kSteps = 8;
constexpr auto kReconnect = std::chrono::seconds(20);  // even if a thread is starved for a while

server::ServerOptions reconnecting(std::uint32_t workers, std::uint32_t servers,
                                   const std::string& strategy) {
  auto options = job(workers, servers, strategy);
  options.members.reconnect = kReconnect;
  return options;
}

using Count = std::shared_ptr<std::atomic<std::uint64_t>>;
Count new_count() {
  return std::make_shared<std::atomic<std::uint64_t>>(0);
}

// A connection to each of these servers is cut once, after so many messages; `count` counts those after which
// the client reconnected. A connection that ends earlier, because the server is still starting, does not
// count.
client::Connector cut_connector(LoopbackCluster& cluster, std::map<std::string, std::uint64_t> cuts,
                                const Count& count) {
  return [&cluster, cuts, count, mine = std::map<std::string, Count>()](
             transport::EventLoop& loop,
             const std::string& address) mutable -> Result<std::unique_ptr<transport::Connection>> {
    auto inner = cluster.network().connect(loop, address);
    if (!inner || cuts[address] == 0) return inner;
    if (auto& was_cut = mine[address]; !was_cut) {
      was_cut = new_count();
    } else if (*was_cut > 0) {
      ++*count;
      cuts[address] = 0;
      return inner;
    }
    Faults faults;
    faults.cut_after = cuts[address];
    faults.count = mine[address];
    return transport::faulty::wrap(loop, std::move(*inner), faults);
  };
}

void expect_exactly_once(LoopbackCluster& cluster, const std::vector<WorkerHistory>& histories,
                         std::uint64_t steps) {
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
  EXPECT_EQ(applied_pushes(histories), histories.size() * steps);
  expect_near(cluster.weights(), replay(histories));
}

// Client messages: Hello, Join, Pull, Initialize (of one worker), then Pushes among heartbeats.
TEST(Reconnect, SyncGivesTheSameBitsWhereverItWasCut) {
  LoopbackCluster undisturbed(false, job(2, 1, "sync"));
  const auto expected = run(undisturbed, 2, kSteps);
  for (std::uint64_t cut = 1; cut <= 12; ++cut) {
    SCOPED_TRACE(cut);
    LoopbackCluster cluster(false, reconnecting(2, 1, "sync"));
    const auto cuts = new_count();
    const auto histories = run_workers(
        cluster, 2, kSteps,
        [&](std::uint32_t rank) {
          return cut_connector(cluster, {{"0", rank == 0 ? cut : 0}}, cuts);
        },
        kReconnect);
    EXPECT_EQ(*cuts, 1u);
    for (std::uint32_t r = 0; r < 2; ++r) EXPECT_EQ(histories[r].weights, expected[r]);
    expect_exactly_once(cluster, histories, kSteps);
    if (HasFailure()) break;
  }
}

TEST(Reconnect, AsyncAppliesEveryPushOnceWhereverItWasCut) {
  for (std::uint64_t cut = 1; cut <= 12; ++cut) {
    SCOPED_TRACE(cut);
    LoopbackCluster cluster(false, reconnecting(3, 1, "async"));
    const auto cuts = new_count();
    const auto histories = run_workers(
        cluster, 3, kSteps,
        [&](std::uint32_t rank) {
          return cut_connector(cluster, {{"0", 1 + (cut + rank) % 12}}, cuts);
        },
        kReconnect);
    EXPECT_EQ(*cuts, 3u);
    expect_exactly_once(cluster, histories, kSteps);
    if (HasFailure()) break;
  }
}

TEST(Reconnect, WithTwoServersEitherMayBeCut) {
  for (const auto* strategy : {"sync", "async", "batch:2"}) {
    for (std::uint64_t cut = 1; cut <= 9; ++cut) {
      for (const auto* where : {"0", "1"}) {
        SCOPED_TRACE(std::string(strategy) + " server " + where + " after " + std::to_string(cut));
        LoopbackCluster cluster(false, reconnecting(3, 2, strategy));
        const auto cuts = new_count();
        const auto histories = run_workers(
            cluster, 3, kSteps,
            [&](std::uint32_t rank) {
              return cut_connector(cluster, {{where, rank < 2 ? cut : 0}}, cuts);
            },
            kReconnect);
        EXPECT_EQ(*cuts, 2u);
        expect_exactly_once(cluster, histories, kSteps);
        if (HasFailure()) return;
      }
    }
  }
}

// The connection breaks while the worker computes, and the network is down when it pushes.
TEST(Reconnect, APushDuringTheBreakWaitsForTheNetwork) {
  LoopbackCluster cluster(false, reconnecting(1, 1, "sync"));
  auto options = cluster.worker_options(0);
  options.reconnect = kReconnect;
  const auto layout = small_layout();
  enum class Network { kBreaks, kAway, kAwayDuringPush, kBack };
  std::atomic<Network> network = Network::kBreaks;
  std::atomic<int> refused = 0, refused_during_push = 0, connected_after = 0;
  const auto connector = cluster.connector();
  auto client = client::WorkerClient::join(
      options,
      [&](transport::EventLoop& loop,
          const std::string& address) -> Result<std::unique_ptr<transport::Connection>> {
        if (network == Network::kAwayDuringPush && ++refused_during_push == 3) network = Network::kBack;
        if (network == Network::kAway || network == Network::kAwayDuringPush) {
          ++refused;
          return Status::unavailable("the network is away");
        }
        auto inner = connector(loop, address);
        if (network == Network::kBack) ++connected_after;
        if (!inner || network == Network::kBack) return inner;
        Faults faults;
        faults.cut_after = 7;  // heartbeats are messages, too: the next cut is never far
        return transport::faulty::wrap(loop, std::move(*inner), faults);
      },
      layout, initial_weights(layout));
  ASSERT_TRUE(client);
  ASSERT_TRUE((*client)->pull());
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    for (std::size_t i = 0; i < layout.size(); ++i) (*client)->gradients()[i] = gradient(0, step, i);
    if (step == 1) {
      network = Network::kAway;
      ASSERT_TRUE(eventually([&] { return refused > 0; }));  // a heartbeat found the connection broken
      network = Network::kAwayDuringPush;
    }
    const auto update = (*client)->push_pull(step_report(0, step));
    ASSERT_TRUE(update) << update.status().message();
    EXPECT_EQ(update->applied.value, step + 1);
  }
  EXPECT_EQ(refused_during_push, 3);
  EXPECT_EQ(connected_after, 1);
  (*client)->leave();
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
  expect_near(cluster.weights(), reference(1, kSteps));
}

// A worker reconnects before the server has detected the broken connection.
TEST(Reconnect, TheNewConnectionTakesOverFromTheOld) {
  LoopbackCluster cluster(false, reconnecting(1, 1, "async"));
  const wire::Join join{wire::Role::kWorker, 0u, {5}, wire::to_wire(small_layout())};
  RawPeer first(cluster.network(), "0");
  ASSERT_TRUE(first.join(cluster.token(), join));
  first.send(wire::Pull{});
  ASSERT_TRUE(first.next<wire::SendWeights>());
  first.send(wire::Initialize{}, initial_weights(small_layout()));
  ASSERT_TRUE(first.next<wire::Weights>());
  RawPeer second(cluster.network(), "0");
  ASSERT_TRUE(second.join(cluster.token(), join));
  const std::vector<float> gradients(small_layout().size(), 1.0f);
  const wire::Push push{{0}, {5}, {1}, {1}, {0}, 32};
  second.send(push, gradients);
  const auto answer = second.next<wire::Weights>();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->request, 1u);
  EXPECT_EQ(answer->applied.value, 1u);
  EXPECT_TRUE(first.wait_closed());
  second.send(wire::Leave{});
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
  EXPECT_EQ(cluster.report().version.value, 1u);
}

TEST(Reconnect, APushSentAgainCountsOnceAndIsAnsweredOnAPull) {
  LoopbackCluster cluster(false, reconnecting(1, 1, "async"));
  const wire::Join join{wire::Role::kWorker, 0u, {5}, wire::to_wire(small_layout())};
  const std::vector<float> gradients(small_layout().size(), 1.0f);
  const wire::Push push{{0}, {5}, {1}, {1}, {0}, 32};
  {
    RawPeer first(cluster.network(), "0");
    ASSERT_TRUE(first.join(cluster.token(), join));
    first.send(wire::Pull{});
    ASSERT_TRUE(first.next<wire::SendWeights>());
    first.send(wire::Initialize{}, initial_weights(small_layout()));
    ASSERT_TRUE(first.next<wire::Weights>());
    first.send(push, gradients);
    ASSERT_TRUE(first.next<wire::Weights>());
  }
  RawPeer second(cluster.network(), "0");
  ASSERT_TRUE(second.join(cluster.token(), join));
  second.send(push, gradients);
  second.send(wire::Pull{77, {}});
  const auto answer = second.next<wire::Weights>();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->request, 77u);
  EXPECT_EQ(answer->applied.value, 1u);
  second.send(wire::Leave{});
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
  EXPECT_EQ(cluster.report().version.value, 1u);
}

// A lost worker reconnects and continues to push: the engine no longer has it.
TEST(Reconnect, AWorkerThatWasGivenUpIsNotAdmittedAgain) {
  auto options = job(2, 1, "async");
  options.members.reconnect = 1s;
  FakeCluster cluster(false, options);
  ManualWorker other(cluster, 0);
  { ManualWorker lost(cluster, 1, 5); }
  ManualWorker::pass(cluster, 1200ms, {&other});
  RawPeer again(cluster, "0");
  ASSERT_TRUE(again.shake_hands(cluster.token()));
  again.send(worker_join(1, 5));
  EXPECT_EQ(again.wait_closed(), "the servers have declared this worker lost");
  ASSERT_TRUE(other.pull());
  other.initialize();
  ASSERT_TRUE(other.answer());
  for (std::uint64_t step = 0; step < 5; ++step) ASSERT_TRUE(other.push(step));
  other.leave();
  EXPECT_EQ(cluster.server().outcome(), Server::Outcome::kFinished);
  expect_near(cluster.weights(), reference(1, 5));
}

// Joined was lost on the way to a worker that leaves the choice of its rank to the server.
TEST(Reconnect, AWorkerThatAsksAgainForAnyRankGetsTheSame) {
  LoopbackCluster cluster(false, patient(2, 1, "async"));
  RawPeer first(cluster.network(), "0");
  ASSERT_EQ(first.join(cluster.token(), worker_join({}, 5))->member.index, 0u);
  RawPeer second(cluster.network(), "0");
  EXPECT_EQ(second.join(cluster.token(), worker_join({}, 5))->member.index, 0u);
  RawPeer other(cluster.network(), "0");
  EXPECT_EQ(other.join(cluster.token(), worker_join({}, 6))->member.index, 1u);
}

// A worker sends Leave twice to a follower, and the leader loses it in between.
TEST(Reconnect, LeavingTwiceTouchesNothingThatIsGone) {
  auto options = job(2, 2, "async");
  options.members.reconnect = 1s;
  FakeCluster cluster(false, options);
  auto at_leader = std::make_unique<RawPeer>(cluster, "0");
  ASSERT_TRUE(at_leader->join(cluster.token(), worker_join(1, 5)));
  for (int i = 0; i < 2; ++i) {
    RawPeer at_follower(cluster, "1");
    ASSERT_TRUE(at_follower.join(cluster.token(), worker_join(1, 5)));
    at_follower.send(wire::Leave{});
    EXPECT_TRUE(at_follower.next<wire::Leave>());
    EXPECT_TRUE(at_follower.is_closed());
  }
  ManualWorker other(cluster, 0);
  ManualWorker::pass(cluster, 300ms, {&other});  // ended connections are removed
  at_leader.reset();
  ManualWorker::pass(cluster, 1200ms, {&other});
  EXPECT_NE(cluster.server().status().workers[1].state, wire::WorkerState::kLive);
  ASSERT_TRUE(other.pull());
  other.initialize();
  ASSERT_TRUE(other.answer());
  for (std::uint64_t step = 0; step < 5; ++step) ASSERT_TRUE(other.push(step));
  other.leave();
  EXPECT_EQ(cluster.server().outcome(), Server::Outcome::kFinished);
  EXPECT_EQ(cluster.server(1).outcome(), Server::Outcome::kFinished);
  expect_near(cluster.weights(), reference(1, 5));
}

// What a follower holds of an incarnation that the leader has forgotten does not block the next one.
TEST(Reconnect, AnOldIncarnationAtAFollowerGivesWayToTheNext) {
  LoopbackCluster cluster(true, patient(2, 2, "async"));
  const auto first = join_in_time(cluster, "0", worker_join(1, 4));  // the leader knows the model
  ASSERT_TRUE(first);
  first->send(wire::Leave{});
  ASSERT_TRUE(first->next<wire::Leave>());
  { ASSERT_TRUE(join_in_time(cluster, "1", worker_join(0, 5))); }
  const auto history = run_worker(cluster, cluster.connector(), 0, 5);
  EXPECT_TRUE(history.failure) << history.failure.message();
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
}

// A broken connection of an observer: its requests are repeated, also to servers that it still reaches.
TEST(Reconnect, AnObserverGetsItsAnswersWhereverItWasCut) {
  for (const auto* where : {"0", "1"}) {
    for (std::uint64_t cut = 1; cut <= 6; ++cut) {
      SCOPED_TRACE(std::string("server ") + where + " after " + std::to_string(cut));
      LoopbackCluster cluster(false, job(2, 2, "sync"));
      // The job ends without observers: one stays connected while the other is disconnected.
      auto steady = client::Observer::join(cluster.link_options(), cluster.connector());
      ASSERT_TRUE(steady) << steady.status().message();
      const auto cuts = new_count();
      auto options = cluster.link_options();
      options.reconnect = kReconnect;
      auto observer = client::Observer::join(options, cut_connector(cluster, {{where, cut}}, cuts));
      ASSERT_TRUE(observer) << observer.status().message();
      (*observer)->request_weights(small_layout(), {kSteps});
      std::thread workers([&] { run_workers(cluster, 2, kSteps); });
      std::optional<client::Observer::Snapshot> snapshot;
      const auto give_up = SteadyClock::now() + testing::kTestTimeout;
      while (!snapshot && SteadyClock::now() < give_up) {
        for (std::size_t s : {0, 1}) {
          const auto status = (*observer)->status(s);
          EXPECT_TRUE(status) << status.status().message();
          if (!status) break;
        }
        snapshot = (*observer)->take_weights();
      }
      workers.join();
      // Heartbeats are messages, too.
      ASSERT_TRUE(eventually([&] { return *cuts == 1; }));
      observer->reset();
      ASSERT_TRUE(snapshot);
      EXPECT_EQ(snapshot->version.value, kSteps);
      expect_near(snapshot->weights, reference(2, kSteps));
    }
  }
}

// A worker is lost and another takes its rank, before a follower has been notified of the loss.
TEST(Reconnect, ANewIncarnationIsNotTakenForTheOldOne) {
  LoopbackCluster cluster(true, job(2, 2, "async"));
  const auto join = [](std::uint64_t incarnation) {
    return wire::Join{wire::Role::kWorker, 1u, {incarnation}, wire::to_wire(small_layout())};
  };
  auto old_leader = join_in_time(cluster, "0", join(5));
  const auto old_follower = join_in_time(cluster, "1", join(5));
  ASSERT_TRUE(old_leader && old_follower);
  old_leader.reset();
  WorkerHistory first, second;
  std::atomic<bool> is_admitted = false;  // by the leader: it tries the follower then
  const auto connector = cluster.connector();
  std::thread other([&] {
    second = run_worker(
        cluster,
        [&](transport::EventLoop& loop, const std::string& address) {
          if (address == "1") is_admitted = true;
          return connector(loop, address);
        },
        1, 5);
  });
  // Not before: the leader would begin the job, and end it, without the other worker.
  EXPECT_TRUE(eventually([&] { return is_admitted.load(); }));
  first = run_worker(cluster, cluster.connector(), 0, 5);
  other.join();
  EXPECT_TRUE(first.failure) << first.failure.message();
  EXPECT_TRUE(second.failure) << second.failure.message();
  EXPECT_EQ(applied_pushes({first, second}), 10u);
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
}

class BadNetwork : public ::testing::TestWithParam<std::tuple<std::string, std::uint32_t>> {
 protected:
  std::string strategy() const { return std::get<0>(GetParam()); }
  std::uint32_t servers() const { return std::get<1>(GetParam()); }

  // The faults of the workers' messages, different for each worker.
  static auto connectors(LoopbackCluster& cluster, const Faults& faults) {
    return [&cluster, faults](std::uint32_t rank) {
      auto mine = faults;
      mine.seed = faults.seed * 100 + rank;
      return cluster.connector(mine);
    };
  }
};
INSTANTIATE_TEST_SUITE_P(Jobs, BadNetwork,
                         ::testing::Combine(::testing::Values("sync", "async", "batch:2"),
                                            ::testing::Values(1u, 2u)),
                         [](const auto& param) {
                           auto name = std::get<0>(param.param);
                           std::erase(name, ':');
                           return name + "_" + std::to_string(std::get<1>(param.param));
                         });

TEST_P(BadNetwork, LateAndDoubledMessagesChangeNothing) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (const bool share_memory : {true, false}) {
      SCOPED_TRACE(std::to_string(seed) + (share_memory ? " shared" : " copied"));
      Faults faults;
      faults.seed = seed;
      faults.delay = faults.duplicate = 0.3;
      faults.max_delay = std::chrono::milliseconds(3);
      faults.count = new_count();
      LoopbackCluster cluster(share_memory, job(3, servers(), strategy()), faults);
      expect_exactly_once(cluster, run_workers(cluster, 3, kSteps, connectors(cluster, faults)), kSteps);
      EXPECT_GT(*faults.count, 0u);
      if (HasFailure()) return;
    }
  }
}

// A lost message, in either direction, is detected by the next one: the client reconnects and repeats what
// was in flight. A reordered message is detected in the same way. Connections between servers have no faults.
TEST_P(BadNetwork, LostAndOvertakenMessagesAreSentAgain) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    SCOPED_TRACE(seed);
    Faults faults;
    faults.seed = seed;
    faults.drop = faults.reorder = 0.01;
    faults.count = new_count();
    auto options = job(3, servers(), strategy());
    options.members.reconnect = std::chrono::seconds(5);
    LoopbackCluster cluster(false, options, faults);
    const auto histories = run_workers(cluster, 3, 4 * kSteps, connectors(cluster, faults), kReconnect);
    expect_exactly_once(cluster, histories, 4 * kSteps);
    EXPECT_GT(*faults.count, 0u);
    if (HasFailure()) return;
  }
}

// The same with shared memory: workers cannot reconnect, but the job ends.
TEST(LostMessages, EndAWorkerOfTheSameHostAndTheJobContinues) {
  LoopbackCluster cluster(true, patient(2));
  RawPeer peer(cluster.network(), "0");
  ASSERT_TRUE(peer.join(cluster.token(), worker_join(1)));
  peer.skip();
  peer.send(wire::Pull{});
  EXPECT_TRUE(peer.wait_closed());
  const auto history = run_worker(cluster, cluster.connector(), 0, 5);
  EXPECT_TRUE(history.failure) << history.failure.message();
  EXPECT_EQ(cluster.report().workers[1].state, wire::WorkerState::kLost);
}

TEST(LostMessages, AMessageThatCameTwiceIsTakenOnce) {
  LoopbackCluster cluster(false, patient(1, 1, "async"));
  RawPeer peer(cluster.network(), "0");
  ASSERT_TRUE(peer.join(cluster.token(), worker_join(0, 5)));
  begin_job(peer);
  ASSERT_TRUE(peer.next<wire::Weights>());
  const std::vector<float> gradients(small_layout().size(), 1.0f);
  const wire::Push push{{0}, {5}, {1}, {1}, {0}, 32};
  for (int i = 0; i < 3; ++i) {
    if (i > 0) peer.repeat();
    peer.send(push, gradients);
  }
  ASSERT_TRUE(peer.next<wire::Weights>());
  peer.send(wire::Leave{});
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
  EXPECT_EQ(cluster.report().version.value, 1u);
}

// A follower whose leader accepts the connection and then sends nothing.
TEST(LostMessages, AFollowerDoesNotWaitForeverForItsLeader) {
  transport::loopback::Network network(true);
  testing::FakeTime time;
  std::vector<std::unique_ptr<transport::Connection>> accepted;
  const auto mute =
      network.listen(time.loop(), "0", [&](auto connection) { accepted.push_back(std::move(connection)); });
  auto options = job(1, 2, "sync");
  options.connect_to_leader = [&] { return network.connect(time.loop(), "0"); };
  options.members.token = cluster::Token::generate();
  options.members.handshake = 2s;
  options.join_timeout = 5s;
  Server follower(time.loop(), options, testing::silent_log());
  time.pass(4900ms);
  EXPECT_EQ(accepted.size(), 2u) << "after 2 s it connects again";
  EXPECT_EQ(follower.outcome(), Server::Outcome::kRunning);
  time.pass(200ms);
  EXPECT_EQ(follower.outcome(), Server::Outcome::kLeaderLost);
}

}  // namespace
}  // namespace capstan
