// Groups of tensors in jobs that write checkpoints and resume from them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/checkpoint_play.h"
#include "server/raw_worker.h"

namespace capstan {
namespace {

using checkpoint::GroupVersion;
using checkpoint::HighWaterMark;
using server::Server;
using testing::LoopbackCluster;
using testing::RawPeer;
using testing::TemporaryFolder;
using namespace testing::play;

// A worker that the test drives. All push the same gradient, so that their order does not matter.
class RawWorker {
 public:
  RawWorker(LoopbackCluster& cluster, std::uint32_t rank, std::uint64_t incarnation)
      : rank_(rank), incarnation_(incarnation), peer_(cluster.network(), "0") {
    EXPECT_TRUE(peer_.join(cluster.token(), worker_join(rank, incarnation)));
  }
  void pull(std::uint64_t request) { peer_.send(wire::Pull{request, {}}); }
  void initialize() {
    EXPECT_TRUE(peer_.next<wire::SendWeights>());
    peer_.send(wire::Initialize{}, initial_weights(small_layout()));
  }
  void push(std::uint64_t sequence, std::uint64_t version) {
    std::vector<float> values;
    for (std::size_t i = 0; i < small_layout().size(); ++i) values.push_back(gradient(0, 0, i));
    peer_.send(wire::Push{{rank_}, {incarnation_}, {sequence}, {sequence}, {version}, 32}, std::move(values));
  }
  std::optional<wire::Weights> answer() { return peer_.next<wire::Weights>(); }
  void leave() {
    peer_.send(wire::Leave{});
    EXPECT_TRUE(peer_.next<wire::Leave>());
  }

 private:
  const std::uint32_t rank_;
  const std::uint64_t incarnation_;
  RawPeer peer_;
};

// "a" and "c" are updated by each push, "b" by two together; momentum 0.9, rate 0.1.
struct Reference {
  std::vector<double> w, m;
  Reference() {
    const auto w0 = initial_weights(small_layout());
    w.assign(w0.begin(), w0.end());
    m.resize(w.size());
  }
  void update(bool of_b) {
    const auto b = small_layout().range(1);
    for (std::size_t i = 0; i < w.size(); ++i) {
      if ((i >= b.begin && i < b.end) != of_b) continue;
      m[i] = 0.9 * m[i] + gradient(0, 0, i);
      w[i] -= 0.1 * m[i];
    }
  }
};

constexpr const char* kGroups = "default=async,b=batch:2";

// Two workers push twice and once; the push that is still buffered by group b is not part of its weights
// when the checkpoint is written.
Reference begun(const std::filesystem::path& run) {
  LoopbackCluster cluster(false, saving(patient(2, 1, kGroups), run, 3));
  RawWorker first(cluster, 0, 42), second(cluster, 1, 43);
  first.pull(1);
  first.initialize();
  second.pull(1);
  EXPECT_TRUE(first.answer());
  EXPECT_TRUE(second.answer());
  Reference reference;
  first.push(1, 0);
  second.push(1, 0);
  EXPECT_TRUE(first.answer());
  EXPECT_TRUE(second.answer());
  reference.update(false);
  reference.update(false);
  reference.update(true);
  first.push(2, 2);  // version 3 of the job: a checkpoint
  reference.update(false);
  const auto folder = checkpoint::folder_of(run, {3});
  EXPECT_TRUE(
      testing::eventually([&] { return std::filesystem::exists(folder / checkpoint::kManifestFile); }));
  cluster.kill(0);
  return reference;
}

TEST(ResumedGroups, HaveTheVersionsAndMarksTheyHad) {
  const TemporaryFolder run;
  auto reference = begun(run.path());
  const auto folder = checkpoint::folder_of(run.path(), {3});
  const auto manifest = checkpoint::read_manifest(folder);
  EXPECT_EQ(manifest.strategy, kGroups);
  EXPECT_EQ(manifest.groups, (std::vector<GroupVersion>{{"default", {3}}, {"b", {1}}}));
  EXPECT_EQ(manifest.marks,
            (std::vector<HighWaterMark>{
                {{0}, {42}, {2}, 0}, {{0}, {42}, {1}, 1}, {{1}, {43}, {1}, 0}, {{1}, {43}, {1}, 1}}));

  // It received no answer: the push is repeated, for group b only, and answered together with the other's.
  auto options = resuming(saving(patient(2, 1, kGroups), run.path()), folder);
  LoopbackCluster resumed(false, options);
  RawWorker first(resumed, 0, 42), second(resumed, 1, 43);
  first.pull(100);
  second.pull(100);
  ASSERT_TRUE(first.answer());
  ASSERT_TRUE(second.answer());
  first.push(2, 2);
  second.push(2, 3);
  const auto answer = second.answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->version.value, 4u);
  EXPECT_EQ(answer->applied.value, 4u);
  ASSERT_TRUE(first.answer());
  reference.update(false);
  reference.update(true);
  first.leave();
  second.leave();
  EXPECT_EQ(resumed.outcome(), Server::Outcome::kFinished);
  expect_near(without_gaps(resumed.weights()), without_gaps(reference.w));
  const auto end = checkpoint::read_manifest(checkpoint::folder_of(run.path(), {4}));
  EXPECT_EQ(end.groups, (std::vector<GroupVersion>{{"default", {4}}, {"b", {2}}}));
  EXPECT_EQ(end.marks,
            (std::vector<HighWaterMark>{
                {{0}, {42}, {2}, 0}, {{0}, {42}, {2}, 1}, {{1}, {43}, {2}, 0}, {{1}, {43}, {2}, 1}}));
}

TEST(ResumedGroups, AsOthersBeginWithTheJobsVersion) {
  const TemporaryFolder run;
  (void)begun(run.path());
  const auto folder = checkpoint::folder_of(run.path(), {3});
  for (const char* strategy : {"default=async,c=async", "default=async,b=async,c=sync", "async"}) {
    SCOPED_TRACE(strategy);
    const TemporaryFolder next;
    LoopbackCluster resumed(false, resuming(saving(patient(1, 1, strategy), next.path()), folder));
    RawWorker worker(resumed, 0, 50);
    worker.pull(100);
    ASSERT_TRUE(worker.answer());
    worker.push(1, 3);
    const auto answer = worker.answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->applied.value, 4u);
    worker.leave();
    EXPECT_EQ(resumed.outcome(), Server::Outcome::kFinished);
    const auto end = checkpoint::read_manifest(checkpoint::folder_of(next.path(), {4}));
    for (const auto& group : end.groups) EXPECT_EQ(group.version.value, 4u) << group.group;
    EXPECT_EQ(end.groups.empty(), std::string(strategy) == "async");
  }
}

// With the usual workers and two servers, the result equals that of an uninterrupted job.
TEST(ResumedGroups, OnTwoServersAreAsIfTheyHadNeverStopped) {
  for (const bool shared : {true, false}) {
    const TemporaryFolder run;
    const auto options = job(1, 2, "default=sync,c=async");
    LoopbackCluster begins(shared, saving(options, run.path()));
    run_workers_to(begins, 1, 3);
    ASSERT_EQ(begins.outcome(), Server::Outcome::kFinished);
    const auto folder = checkpoint::folder_of(run.path(), {3});
    EXPECT_EQ(checkpoint::read_manifest(folder).groups,
              (std::vector<GroupVersion>{{"default", {3}}, {"c", {3}}}));
    LoopbackCluster resumed(shared, resuming(options, folder));
    run_workers_to(resumed, 1, 6);
    ASSERT_EQ(resumed.outcome(), Server::Outcome::kFinished);
    expect_near(without_gaps(resumed.weights()), without_gaps(arithmetic(1, 6).weights));
  }
}

}  // namespace
}  // namespace capstan
