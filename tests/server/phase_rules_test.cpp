// Steps of two phases with real servers and clients, against a few lines of plain arithmetic: each phase
// updates its own tensors with their own optimizer. A push's values for other tensors are not used.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/checkpoint/checkpoint.h"
#include "capstan/checkpoint/run_checkpoints.h"
#include "server/phase_play.h"
#include "server/raw_peer.h"
#include "support/temporary_folder.h"

namespace capstan {
namespace {

using ::testing::ElementsAre;
using testing::eventually;
using ::testing::HasSubstr;
using testing::LoopbackCluster;
using testing::TemporaryFolder;
using namespace testing::phase_play;

class PhaseRules : public ::testing::TestWithParam<std::tuple<bool, std::uint32_t>> {
 protected:
  const bool shared_ = std::get<0>(GetParam());
  const std::uint32_t servers_ = std::get<1>(GetParam());
};
INSTANTIATE_TEST_SUITE_P(With, PhaseRules, ::testing::Combine(::testing::Bool(), ::testing::Values(1u, 2u)),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param) ? "Shared" : "Copied") +
                                  std::to_string(std::get<1>(param.param));
                         });

TEST_P(PhaseRules, Sync) {
  LoopbackCluster cluster(shared_, options_of("sync", 3, servers_));
  auto workers = joined(cluster, 3);
  on_all(workers, [](Worker& worker) {
    worker.train(8);
    worker.leave();
  });
  Arithmetic a;
  for (std::uint64_t step = 0; step < 8; ++step) {
    for (const int phase : {0, 1}) {
      Vector mean(a.w.size());
      for (std::uint32_t w = 0; w < 3; ++w) {
        const auto g = gradient(a.w, w, step, phase);
        for (std::size_t i = 0; i < g.size(); ++i) mean[i] += g[i] / 3;
      }
      a.update(phase, mean);
    }
  }
  expect(cluster, a);
  EXPECT_EQ(cluster.report().samples, 8u * 3 * 8) << "a step's samples count once";
  // A push of the discriminator to one server also has the generator's weight, which is between its tensors.
  const std::uint64_t pushed = (1200 + 30 + (servers_ == 1 ? 1000 : 0)) + (1000 + 30 + 7);
  EXPECT_EQ(cluster.report().bytes_pushed, 3 * 8 * 4 * pushed);
  EXPECT_EQ(cluster.report().bytes_pulled, 3 * (2 * 8 + 1) * 4u * (1200 + 1000 + 30 + 7));
}

TEST_P(PhaseRules, Async) {
  LoopbackCluster cluster(shared_, options_of("async", 2, servers_));
  auto workers = joined(cluster, 2);
  Arithmetic a;
  std::vector<Vector> read(2, a.w);
  std::vector<std::uint64_t> version(2);
  std::vector<int> phase(2);
  for (const std::uint32_t w : {0, 1, 0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 1}) {
    workers[w]->push();
    a.update(phase[w], gradient(read[w], w, version[w], phase[w]));
    read[w] = a.w;
    version[w] = a.version[1];
    phase[w] = 1 - phase[w];
  }
  for (auto& worker : workers) worker->leave();
  EXPECT_EQ(a.version[0], 10u);
  EXPECT_EQ(a.version[1], 10u);
  expect(cluster, a);
}

// ---- what a push carries ----

// The ranges by hand: two servers split the model at element 2048.
TEST(PushesOfPhases, CarryTheirPartOfEachShard) {
  constexpr Range kParts[2][2] = {{{0, 1200}, {2208, 2240}}, {{1200, 2048}, {2048, 2256}}};
  LoopbackCluster cluster(false, options_of("async", 1, 2));
  std::vector<std::unique_ptr<testing::RawPeer>> peers;
  for (const auto* address : {"0", "1"}) {
    ASSERT_TRUE(eventually([&] {
      auto peer = std::make_unique<testing::RawPeer>(cluster.network(), address);
      if (!peer->join(cluster.token(), worker_join(0))) return false;
      peers.push_back(std::move(peer));
      return true;
    }));
  }
  peers[0]->send(wire::Pull{});
  ASSERT_TRUE(peers[0]->next<wire::SendWeights>());
  Arithmetic a;
  peers[0]->send(wire::Initialize{}, part(a.w, {0, 2048}));
  peers[1]->send(wire::Initialize{}, part(a.w, {2048, 2256}));
  for (auto& peer : peers) ASSERT_TRUE(peer->next<wire::Weights>());
  for (std::uint64_t sequence = 1; sequence <= 6; ++sequence) {
    const int phase = sequence % 2 == 1 ? 0 : 1;
    const auto g = gradient(a.w, 0, sequence, phase);
    wire::Push push{{0}, {1}, {sequence}, {sequence / 2}, {a.version[1]}, 8};
    push.phase = static_cast<std::uint32_t>(phase);
    for (std::size_t s = 0; s < 2; ++s) peers[s]->send(push, part(g, kParts[phase][s]));
    for (auto& peer : peers) ASSERT_TRUE(peer->next<wire::Weights>()) << sequence;
    a.update(phase, g);
  }
  for (auto& peer : peers) peer->send(wire::Leave{});
  expect(cluster, a);
}

// A connection to this server is cut once, after so many messages of the client.
client::Connector cut_connector(LoopbackCluster& cluster, const std::string& server, std::uint64_t messages,
                                const std::shared_ptr<std::atomic<std::uint64_t>>& cuts) {
  return [&cluster, server, messages, cuts](
             transport::EventLoop& loop,
             const std::string& address) -> Result<std::unique_ptr<transport::Connection>> {
    auto inner = cluster.network().connect(loop, address);
    if (!inner || address != server || *cuts > 0) return inner;
    transport::faulty::Faults faults;
    faults.cut_after = messages;
    faults.count = cuts;
    return transport::faulty::wrap(loop, std::move(*inner), faults);
  };
}

// Both sides repeat what they have to, in the middle of a step, too.
TEST(PushesOfPhases, AreRepeatedAfterAReconnect) {
  for (const auto* server : {"0", "1"}) {
    for (std::uint64_t cut = 3; cut <= 12; ++cut) {
      SCOPED_TRACE(std::string("server ") + server + " after " + std::to_string(cut));
      auto options = options_of("sync", 1, 2);
      options.members.reconnect = testing::kTestTimeout;
      LoopbackCluster cluster(false, options);
      const auto cuts = std::make_shared<std::atomic<std::uint64_t>>(0);
      Worker worker(cluster, 0, d_then_g(), cut_connector(cluster, server, cut, cuts));
      worker.begin();
      worker.train(6);
      worker.leave();
      EXPECT_EQ(*cuts, 1u);
      Arithmetic a;
      for (std::uint64_t step = 0; step < 6; ++step) {
        for (const int phase : {0, 1}) a.update(phase, gradient(a.w, 0, step, phase));
      }
      expect(cluster, a);
      if (HasFailure()) return;
    }
  }
}

// ---- checkpoints ----

std::vector<float> trained(const server::ServerOptions& options, std::uint64_t steps) {
  LoopbackCluster cluster(true, options);
  auto workers = joined(cluster, options.job.workers);
  on_all(workers, [&](Worker& worker) {
    worker.train(steps);
    worker.leave();
  });
  EXPECT_EQ(cluster.outcome(), server::Server::Outcome::kFinished);
  return cluster.weights();
}

TEST(PhasesInCheckpoints, ResumeWithTheSameBits) {
  const TemporaryFolder folder;
  auto first = options_of("sync", 2, 2);
  first.checkpoints = {folder.path(), 2, {}, 100};
  (void)trained(first, 4);
  auto second = options_of("sync", 2, 2);
  const auto from = checkpoint::folder_of(folder.path(), {4});
  second.resume = checkpoint::Found{from, checkpoint::read_manifest(from)};
  const auto& manifest = second.resume->manifest;
  EXPECT_EQ(manifest.phases, d_then_g());
  EXPECT_EQ(manifest.optimizer, "default=sgd,d.*=adam");
  EXPECT_THAT(manifest.state, ElementsAre("momentum_buffer", "exp_avg", "exp_avg_sq"));
  EXPECT_THAT(manifest.groups,
              ElementsAre(checkpoint::GroupVersion{"phase generator, optimizer default", {4}},
                          checkpoint::GroupVersion{"phase discriminator, optimizer d.*", {4}}))
      << "between steps no group is ahead";
  EXPECT_EQ(trained(second, 3), trained(options_of("sync", 2, 2), 7));
}

TEST(PhasesInCheckpoints, EndBetweenStepsAtAStopRequest) {
  const TemporaryFolder folder;
  auto options = options_of("sync", 1, 1);
  options.checkpoints = {folder.path(), 1'000'000, {}, 100};
  LoopbackCluster cluster(true, options);
  Worker worker(cluster, 0);
  worker.begin();
  worker.train(2);
  EXPECT_FALSE(worker.push().stop);
  auto observer = client::Observer::join(cluster.link_options(), cluster.connector());
  ASSERT_TRUE(observer) << observer.status().message();
  (*observer)->stop("enough");
  ASSERT_TRUE((*observer)->status()) << "after the request";
  observer->reset();
  const auto last = worker.push();
  EXPECT_TRUE(last.stop);
  EXPECT_EQ(last.version.value, 3u);
  worker.leave();
  EXPECT_EQ(cluster.outcome(), server::Server::Outcome::kFinished);
  const auto manifest = checkpoint::read_manifest(checkpoint::folder_of(folder.path(), {3}));
  for (const auto& group : manifest.groups) EXPECT_EQ(group.version.value, 3u) << group.group;
}

// ---- workers that differ ----

std::string refusal(LoopbackCluster& cluster, std::uint32_t rank, const std::vector<StepPhase>& phases) {
  const auto client = client::WorkerClient::join(cluster.worker_options(rank), cluster.connector(),
                                                 four_tensors(), std::vector<float>(four_tensors().size()),
                                                 {.buffers = {}, .data = {}, .phases = phases});
  return client ? "" : client.status().message();
}

TEST(PhasesOfAJob, AreTheSameForAllWorkers) {
  LoopbackCluster cluster(true, options_of("sync", 2, 2));
  EXPECT_THAT(refusal(cluster, 0, {{"d", {"d.*"}}, {"g", {"g.w*"}}}),
              HasSubstr("tensor g.bias is in no phase of a step"));
  Worker first(cluster, 0);
  EXPECT_THAT(refusal(cluster, 1, {}), HasSubstr("2 phases of a step here and 0 there"));
  EXPECT_THAT(refusal(cluster, 1, {{"discriminator", {"d.*"}}, {"generator", {"*"}}}),
              HasSubstr("phase 1 of a step is generator (g.*) here and generator (*) there"));
  Worker second(cluster, 1);
  second.leave();
  first.begin();
  first.train(1);
  first.leave();
  EXPECT_EQ(cluster.outcome(), server::Server::Outcome::kFinished);
}

TEST(PhasesOfAJob, ArriveInOrder) {
  auto options = options_of("sync", 1, 1);
  LoopbackCluster cluster(true, options);
  Worker worker(cluster, 0);
  worker.begin();
  client::StepReport report{.samples = 8};
  report.phase = 1;
  const auto update = worker.client().push_pull(report);
  ASSERT_FALSE(update);
  EXPECT_THAT(update.status().message(), HasSubstr("a push of phase 1 where phase 0 is due"));
}

TEST(PhasesOfLocalSteps, AreOnePushOfAllTensors) {
  auto options = options_of("local-sgd:2", 1, 1);
  LoopbackCluster cluster(true, options);
  Worker worker(cluster, 0);
  worker.begin();
  ASSERT_EQ(worker.client().local_optimizer().entries.size(), 2u);
  EXPECT_EQ(worker.client().local_optimizer().entries[1].glob, "d.*");
  EXPECT_EQ(worker.client().local_optimizer().entries[1].name, "adam");
  for (std::uint64_t round = 1; round <= 2; ++round) {
    std::ranges::fill(worker.client().gradients(), static_cast<float>(round));
    const auto update = worker.client().push_pull({.samples = 8, .steps = 2});
    ASSERT_TRUE(update) << update.status().message();
    EXPECT_EQ(update->version.value, round);
    for (const auto w : worker.client().weights()) ASSERT_EQ(w, static_cast<float>(round));
  }
  worker.leave();
}

}  // namespace
}  // namespace capstan
