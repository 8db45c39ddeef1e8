// A worker that violates the protocol is lost; nothing else is affected.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "server/raw_worker.h"
#include "support/memory_limit.h"

namespace capstan {
namespace {

using server::Server;
using testing::LoopbackCluster;
using testing::RawPeer;
using namespace testing::play;

// One of two workers misbehaves; the other finishes alone.
class Misbehaviour : public ::testing::Test {
 protected:
  using Misdeed = std::function<void(RawPeer&)>;

  void expect_only_the_wrongdoer_is_lost(bool share_memory, const Misdeed& misdeed) {
    LoopbackCluster cluster(share_memory, patient(2));
    RawPeer peer(cluster.network(), "0");
    ASSERT_TRUE(peer.join(cluster.token(), worker_join(1)));
    begin_job(peer);
    WorkerHistory honest;
    std::thread other([&] { honest = run_worker(cluster, cluster.connector(), 0, 5); });
    EXPECT_TRUE(peer.next<wire::Weights>());
    misdeed(peer);
    EXPECT_TRUE(peer.wait_closed());
    other.join();
    EXPECT_TRUE(honest.failure) << honest.failure.message();
    EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
    expect_near(cluster.weights(), replay({honest}));
  }
  static std::vector<float> shard() { return std::vector<float>(small_layout().size(), 1e9f); }
};

TEST_F(Misbehaviour, PushesInAnothersName) {
  expect_only_the_wrongdoer_is_lost(false, [](RawPeer& p) {
    p.send(wire::Push{{0}, {1}, {1}, {1}, {}, 1}, shard());
  });
}
TEST_F(Misbehaviour, PushesOfAnotherIncarnation) {
  expect_only_the_wrongdoer_is_lost(false, [](RawPeer& p) {
    p.send(wire::Push{{1}, {9}, {1}, {1}, {}, 1}, shard());
  });
}
TEST_F(Misbehaviour, PushesOutOfOrder) {
  expect_only_the_wrongdoer_is_lost(false, [](RawPeer& p) {
    p.send(wire::Push{{1}, {1}, {2}, {1}, {}, 1}, shard());
  });
}
TEST_F(Misbehaviour, PushesOfTheWrongSize) {
  expect_only_the_wrongdoer_is_lost(false, [](RawPeer& p) {
    p.send(wire::Push{{1}, {1}, {1}, {1}, {}, 1}, std::vector<float>(3));
  });
}
TEST_F(Misbehaviour, PushesWithoutAGradient) {
  expect_only_the_wrongdoer_is_lost(false, [](RawPeer& p) { p.send(wire::Push{{1}, {1}, {1}, {1}, {}, 1}); });
}
TEST_F(Misbehaviour, SharesASegmentOfTheWrongSize) {
  expect_only_the_wrongdoer_is_lost(true, [](RawPeer& p) {
    const auto segment = transport::Segment::create(64, transport::Segment::PeerMay::kRead);
    p.send(wire::Share{wire::Arena::kGradients}, segment);
  });
}
TEST_F(Misbehaviour, SharesWeightsThatMayNotBeWritten) {
  expect_only_the_wrongdoer_is_lost(true, [](RawPeer& p) {
    const auto segment =
        transport::Segment::create(small_layout().size() * sizeof(float), transport::Segment::PeerMay::kRead);
    p.send(wire::Share{wire::Arena::kWeights}, segment);
  });
}
TEST_F(Misbehaviour, OrdersUpdates) {
  expect_only_the_wrongdoer_is_lost(true, [](RawPeer& p) { p.send(wire::ApplyOrder{{0}, {{{0}, {1}, 1}}}); });
}
TEST_F(Misbehaviour, ClaimsThatTheOtherIsGone) {
  expect_only_the_wrongdoer_is_lost(true, [](RawPeer& p) {
    p.send(wire::Gone{{wire::Role::kWorker, 0}, {}, true});
  });
}
TEST_F(Misbehaviour, SendsAWrongType) {
  expect_only_the_wrongdoer_is_lost(true, [](RawPeer& p) { p.send_bytes({std::byte{99}, std::byte{0}}); });
}

// The leader asks one worker.
TEST(InitialWeights, AWorkerThatWasNotAskedIsLost) {
  LoopbackCluster cluster(false, patient(2));
  RawPeer asked(cluster.network(), "0"), other(cluster.network(), "0");
  ASSERT_TRUE(asked.join(cluster.token(), worker_join(0)));
  ASSERT_TRUE(other.join(cluster.token(), worker_join(1)));
  asked.send(wire::Pull{});
  ASSERT_TRUE(asked.next<wire::SendWeights>());
  other.send(wire::Initialize{}, std::vector<float>(small_layout().size(), 1e9f));
  EXPECT_THAT(other.wait_closed().value_or(""), ::testing::HasSubstr("not requested"));
  asked.send(wire::Initialize{}, initial_weights(small_layout()));
  EXPECT_TRUE(asked.next<wire::Weights>());
  asked.send(wire::Leave{});
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
  EXPECT_EQ(cluster.weights(), initial_weights(small_layout()));
}

// It gets an answer to the first one, and to the newest of those that it sent before it read the answer.
TEST(Observers, PullsInALoopAreAnsweredOnceTheLastAnswerIsSent) {
  LoopbackCluster cluster(false, patient(1));
  RawPeer worker(cluster.network(), "0"), greedy(cluster.network(), "0"), other(cluster.network(), "0");
  ASSERT_TRUE(worker.join(cluster.token(), worker_join(0)));
  begin_job(worker);
  EXPECT_TRUE(worker.next<wire::Weights>());
  ASSERT_TRUE(greedy.join(cluster.token(), {wire::Role::kObserver, {}, {1}, {}}));
  greedy.send(wire::Pull{1, {}});
  // Messages to this server arrive in the order in which they are sent.
  ASSERT_TRUE(other.join(cluster.token(), {wire::Role::kObserver, {}, {2}, {}}));
  for (std::uint64_t request = 2; request <= 100; ++request) greedy.send(wire::Pull{request, {}});
  other.send(wire::StatusRequest{});
  EXPECT_TRUE(other.next<wire::StatusReport>());
  for (const std::uint64_t request : {1u, 100u}) {
    const auto answer = greedy.next<wire::Weights>();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->request, request);
  }
}

// Sanitizers end the process when an allocation fails.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Memory, APayloadThatDoesNotFitIsRefused) {
  constexpr std::size_t kBytes = std::size_t{1} << 35;
  void* const reserved =
      ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(reserved, MAP_FAILED);
  {
    LoopbackCluster cluster(false, patient(2));
    RawPeer peer(cluster.network(), "0");
    auto join = worker_join(1);
    join.buffers = wire::to_wire(FlatLayout({{"mean", {kBytes / sizeof(float)}}}));
    ASSERT_TRUE(peer.join(cluster.token(), join));
    const auto before = testing::limit_memory();
    peer.send_from(wire::Buffers{}, {static_cast<const std::byte*>(reserved), kBytes});
    EXPECT_EQ(peer.wait_closed(), "not enough memory for Buffers with 34359738368 bytes");
    ::setrlimit(RLIMIT_AS, &before);
    RawPeer observer(cluster.network(), "0");
    EXPECT_TRUE(observer.join(cluster.token(), {wire::Role::kObserver, {}, {1}, {}})) << "the job continues";
  }
  ::munmap(reserved, kBytes);
}
#endif

// What a worker sends after its Leave must not admit it again, nor end the server.
TEST(Leaving, AWorkerSendsNothingAfterLeaving) {
  for (int what = 0; what < 3; ++what) {
    LoopbackCluster cluster(true, patient(2));
    RawPeer peer(cluster.network(), "0");
    ASSERT_TRUE(peer.join(cluster.token(), worker_join(1)));
    begin_job(peer);
    WorkerHistory honest;
    std::thread other([&] { honest = run_worker(cluster, cluster.connector(), 0, 5); });
    EXPECT_TRUE(peer.next<wire::Weights>());
    peer.send(wire::Leave{});
    const auto segment =
        transport::Segment::create(small_layout().size() * sizeof(float), transport::Segment::PeerMay::kRead);
    if (what == 0) peer.send(wire::Share{wire::Arena::kGradients}, segment);
    if (what == 1) peer.send(wire::Pull{7, {}});
    if (what == 2) peer.send(wire::Push{{1}, {1}, {1}, {1}, {}, 1});
    other.join();
    EXPECT_TRUE(honest.failure) << honest.failure.message();
    EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
    expect_near(cluster.weights(), replay({honest}));
  }
}

}  // namespace
}  // namespace capstan
