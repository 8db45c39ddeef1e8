// Which workers may join a job whose data are known, and what a worker repeats after the servers have
// restarted.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/checkpoint_play.h"
#include "server/raw_worker.h"

namespace capstan {
namespace {

using server::Server;
using testing::LoopbackCluster;
using testing::RawPeer;
using testing::TemporaryFolder;
using namespace testing::play;
using ::testing::HasSubstr;

// ---- workers that do not match the job ----

struct Misfit {
  const char* what;
  client::WorkerPart part;
  const char* says;
};

std::vector<Misfit> misfits() {
  const auto with = [](auto change) {
    auto part = usual_part();
    change(part);
    return part;
  };
  return {{"other samples", with([](auto& p) { p.data.samples = 641; }), "641 samples"},
          {"another seed", with([](auto& p) { p.data.seed = 6; }), "seed 6"},
          {"another batch", with([](auto& p) { p.data.batch = 16; }), "batch size 16"},
          {"no buffers", with([](auto& p) { p.buffers = {}; }), "buffers differ"},
          {"other buffers", with([](auto& p) {
             p.buffers = FlatLayout({{"bn.running_mean", {4}}});
           }),
           "bn.running_mean"}};
}

// The reason names the first difference; later workers are not affected.
void expect_refused(LoopbackCluster& cluster, const Misfit& misfit) {
  const auto history = run_worker_to(cluster, 1, 1, End::kLeaves, misfit.part);
  EXPECT_FALSE(history.failure) << misfit.what;
  EXPECT_THAT(history.failure.message(), HasSubstr(misfit.says)) << misfit.what;
}

TEST(AMisfit, IsRefusedWhileTheJobContinues) {
  LoopbackCluster cluster(true, job(2, 1, "sync"));
  CheckpointHistory other;
  // The first has joined, and waits for the second.
  std::thread first([&] { other = run_worker_to(cluster, 0, 6); });
  auto observer = client::Observer::join(cluster.link_options(), cluster.connector());
  ASSERT_TRUE(observer);
  EXPECT_TRUE(testing::eventually([&] {
    const auto status = (*observer)->status();
    return status && status->workers[0].state == wire::WorkerState::kLive;
  }));
  for (const auto& misfit : misfits()) expect_refused(cluster, misfit);
  const auto history = run_worker_to(cluster, 1, 6);
  first.join();
  EXPECT_TRUE(history.failure) << history.failure.message();
  EXPECT_TRUE(other.failure) << other.failure.message();
  observer->reset();
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
  expect_near(cluster.weights(), arithmetic(2, 6).weights);
}

TEST(AMisfit, ThatJoinsAResumedJobFirstIsRefusedAndDecidesNothing) {
  const TemporaryFolder run;
  LoopbackCluster begins(true, saving(job(2, 1, "sync"), run.path()));
  run_workers_to(begins, 2, 3);
  ASSERT_EQ(begins.outcome(), Server::Outcome::kFinished);
  for (const auto& misfit : misfits()) {
    // Another batch size concerns the new data segment only.
    if (misfit.part.data.batch != 32) continue;
    LoopbackCluster resumed(true, resuming(job(2, 1, "sync"), checkpoint::folder_of(run.path(), {3})));
    auto wrong = misfit;
    wrong.part.data.batch = 64;
    expect_refused(resumed, wrong);
    run_workers_to(resumed, 2, 6);
    EXPECT_EQ(resumed.outcome(), Server::Outcome::kFinished);
    expect_near(without_gaps(resumed.weights()), without_gaps(arithmetic(2, 6).weights));
  }
}

TEST(AMisfit, WithoutAPlaceDecidesNothing) {
  LoopbackCluster cluster(true, job(2, 1, "sync"));
  for (const auto& misfit : misfits()) {
    auto out_of_range = cluster.worker_options(9);
    const auto layout = small_layout();
    const auto refused = client::WorkerClient::join(out_of_range, cluster.connector(), layout,
                                                    initial_weights(layout), misfit.part);
    EXPECT_FALSE(refused);
    EXPECT_THAT(refused.status().message(), HasSubstr("worker 9 does not exist"));
  }
  run_workers_to(cluster, 2, 3);
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
}

// With another batch size the job continues in a segment of its own.
TEST(ResumingWith, AnotherBatchSizeIsAnotherSegment) {
  const TemporaryFolder run;
  LoopbackCluster begins(true, saving(job(2, 1, "sync"), run.path()));
  run_workers_to(begins, 2, 3);
  ASSERT_EQ(begins.outcome(), Server::Outcome::kFinished);
  LoopbackCluster resumed(
      true, resuming(saving(job(3, 1, "sync"), run.path()), checkpoint::folder_of(run.path(), {3})));
  auto part = usual_part();
  part.data.batch = 16;
  run_workers_to(resumed, 3, 5, End::kLeaves, part);
  EXPECT_EQ(resumed.outcome(), Server::Outcome::kFinished);
  EXPECT_EQ(checkpoint::read_manifest(checkpoint::folder_of(run.path(), {5})).segments,
            (std::vector<DataSegment>{{32, {3, 3}}, {16, {2, 2, 2}}}));
}

// ---- repeated pushes ----

// A worker of several servers that the test drives.
class RawWorker {
 public:
  RawWorker(LoopbackCluster& cluster, std::uint32_t servers) {
    for (std::uint32_t s = 0; s < servers; ++s) {
      for (const auto give_up = SteadyClock::now() + std::chrono::seconds(30);
           SteadyClock::now() < give_up;) {
        auto peer = std::make_unique<RawPeer>(cluster.network(), std::to_string(s));
        const auto joined = peer->join(cluster.token(), worker_join(0, 42));
        if (!joined) continue;
        ranges_.push_back({joined->begin, joined->end});
        peers_.push_back(std::move(peer));
        break;
      }
    }
  }
  bool is_joined(std::uint32_t servers) const { return peers_.size() == servers; }
  RawPeer& leader() { return *peers_[0]; }
  void initialize() {
    leader().send(wire::Pull{1, {}});
    EXPECT_TRUE(leader().next<wire::SendWeights>());
    const auto weights = initial_weights(small_layout());
    for (std::size_t s = 0; s < peers_.size(); ++s) {
      peers_[s]->send(wire::Initialize{},
                      std::vector(weights.begin() + static_cast<std::ptrdiff_t>(ranges_[s].begin),
                                  weights.begin() + static_cast<std::ptrdiff_t>(ranges_[s].end)));
    }
  }
  void push(std::uint64_t sequence, std::uint64_t version, bool poisoned = false) {
    for (std::size_t s = 0; s < peers_.size(); ++s) {
      std::vector<float> values;
      for (auto i = ranges_[s].begin; i < ranges_[s].end; ++i)
        values.push_back(poisoned ? 1e9f : gradient(0, version, i));
      peers_[s]->send(wire::Push{{0}, {42}, {sequence}, {sequence}, {version}, 32}, std::move(values));
    }
  }
  // The answer of every server to one request.
  std::optional<wire::Weights> answer(std::uint64_t request) {
    std::optional<wire::Weights> first;
    for (auto& peer : peers_) {
      auto weights = peer->next<wire::Weights>();
      if (!weights) return {};
      EXPECT_EQ(weights->request, request);
      if (!first) first = weights;
      EXPECT_EQ(weights->version, first->version);
    }
    return first;
  }
  void leave() {
    for (auto& peer : peers_) peer->send(wire::Leave{});
    for (auto& peer : peers_) EXPECT_TRUE(peer->next<wire::Leave>());
  }

 private:
  std::vector<std::unique_ptr<RawPeer>> peers_;
  std::vector<Range> ranges_;
};

TEST(APushThatComesAgain, AfterTheServersCameBackIsAnsweredAndNotAppliedTwice) {
  for (const std::uint32_t servers : {1u, 2u}) {
    for (const char* strategy : {"sync", "async"}) {
      const TemporaryFolder run;
      {
        LoopbackCluster begins(false, saving(patient(1, servers, strategy), run.path()));
        RawWorker worker(begins, servers);
        ASSERT_TRUE(worker.is_joined(servers));
        worker.initialize();
        ASSERT_TRUE(worker.answer(1));
        for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) {
          worker.push(sequence, sequence - 1);
          ASSERT_TRUE(worker.answer(sequence));
        }
        worker.leave();
        ASSERT_EQ(begins.outcome(), Server::Outcome::kFinished);
      }
      const auto folder = checkpoint::folder_of(run.path(), {3});
      EXPECT_EQ(checkpoint::read_manifest(folder).marks,
                (std::vector<checkpoint::HighWaterMark>{{{0}, {42}, {3}}}));

      LoopbackCluster resumed(false, resuming(patient(1, servers, strategy), folder));
      RawWorker worker(resumed, servers);
      ASSERT_TRUE(worker.is_joined(servers));
      worker.leader().send(wire::Pull{100, {}});
      auto answer = worker.answer(100);
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->version.value, 3u);
      // It did not receive the answer to its third push.
      worker.push(3, 2, true);
      worker.leader().send(wire::Pull{101, {}});
      answer = worker.answer(101);
      ASSERT_TRUE(answer) << servers << " servers, " << strategy;
      EXPECT_EQ(answer->version.value, 3u);
      worker.push(4, 3);
      answer = worker.answer(4);
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->applied.value, 4u);
      worker.leave();
      EXPECT_EQ(resumed.outcome(), Server::Outcome::kFinished);
      expect_near(without_gaps(resumed.weights()), without_gaps(arithmetic(1, 4).weights));
    }
  }
}

// Another process with the same rank counts from the start.
TEST(APushOfAnotherIncarnation, AfterTheServersCameBackIsNew) {
  const TemporaryFolder run;
  LoopbackCluster begins(true, saving(job(1, 1, "sync"), run.path()));
  run_workers_to(begins, 1, 3);
  ASSERT_EQ(begins.outcome(), Server::Outcome::kFinished);
  LoopbackCluster resumed(false, resuming(patient(1), checkpoint::folder_of(run.path(), {3})));
  RawPeer peer(resumed.network(), "0");
  auto join = worker_join(0, 42);
  join.buffers = wire::to_wire(usual_part().buffers);
  join.data = usual_part().data;
  ASSERT_TRUE(peer.join(resumed.token(), join));
  peer.send(wire::Pull{100, {}});
  ASSERT_TRUE(peer.next<wire::Weights>());
  std::vector<float> values;
  for (std::size_t i = 0; i < small_layout().size(); ++i) values.push_back(gradient(0, 3, i));
  peer.send(wire::Push{{0}, {42}, {1}, {1}, {3}, 32}, values);
  const auto answer = peer.next<wire::Weights>();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->applied.value, 4u);
  peer.send(wire::Leave{});
  EXPECT_EQ(resumed.outcome(), Server::Outcome::kFinished);
  expect_near(without_gaps(resumed.weights()), without_gaps(arithmetic(1, 4).weights));
}

}  // namespace
}  // namespace capstan
