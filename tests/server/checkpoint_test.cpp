// Whole jobs that write checkpoints and resume from them, against plain arithmetic.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capstan/user_error.h"

#include "server/checkpoint_play.h"

namespace capstan {
namespace {

namespace fs = std::filesystem;
using server::Server;
using testing::contents;
using testing::LoopbackCluster;
using testing::silent_log;
using testing::TemporaryFolder;
using testing::write_file;
using namespace testing::play;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Case {
  const char* strategy;
  std::uint32_t workers, servers;
  bool share_memory;
};

class Saving : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Jobs, Saving,
                         ::testing::Values(Case{"sync", 2, 1, true}, Case{"sync", 2, 2, false},
                                           Case{"sync", 3, 3, true}, Case{"async", 1, 1, false},
                                           Case{"async", 1, 2, true}, Case{"async", 1, 3, false}),
                         [](const auto& param) {
                           return param.param.strategy + std::to_string(param.param.servers);
                         });

// Delays the workers of a job until a condition holds for its servers, which write at low priority.
class Watch {
 public:
  explicit Watch(LoopbackCluster& cluster)
      : observer_(client::Observer::join(cluster.link_options(), cluster.connector())) {}
  // The last report; from any thread.
  wire::StatusReport until(const std::function<bool(const wire::StatusReport&)>& condition) {
    const std::lock_guard lock(mutex_);
    wire::StatusReport last;
    EXPECT_TRUE(testing::eventually([&] {
      const auto report = (*observer_)->status();
      if (report) last = *report;
      return !report || condition(last);
    }));
    return last;
  }
  void until_written(std::uint64_t version) {
    until([&](const auto& report) { return report.checkpoint.value >= version; });
  }
  // A job does not end while an observer is connected.
  void end() { (*observer_).reset(); }

 private:
  std::mutex mutex_;
  Result<std::unique_ptr<client::Observer>> observer_;
};

TEST_P(Saving, HoldsWhatPlainArithmeticHasAtItsVersionWhileTrainingContinues) {
  const auto& c = GetParam();
  const TemporaryFolder run;
  LoopbackCluster cluster(c.share_memory, saving(job(c.workers, c.servers, c.strategy), run.path(), 5));
  Watch watch(cluster);
  const auto histories =
      run_workers_to(cluster, c.workers, 23, End::kLeaves, usual_part(), [&](std::uint64_t v) {
        if (v == 8) watch.until_written(5);
        if (v == 16) watch.until_written(10);
      });
  watch.end();
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
  EXPECT_EQ(cluster.report().checkpoint.value, 23u);
  EXPECT_EQ(cluster.report().checkpoint_error, "");
  const auto list = checkpoint::list(run.path());
  ASSERT_GE(list.size(), 3u);
  EXPECT_EQ(list[0].version.value, 5u);
  EXPECT_EQ(list[1].version.value, 10u);
  EXPECT_EQ(list.back().version.value, 23u) << "one more at the end";
  for (const auto& entry : list) {
    const auto version = entry.version.value;
    const auto s = saved(entry.folder);
    EXPECT_EQ(s.manifest.version, entry.version);
    expect_is_arithmetic(s, c.workers);
    // Bitwise identical to the workers' weights.
    EXPECT_EQ(without_gaps(histories[0].seen.at(version)), s.weights);
    EXPECT_EQ(s.manifest.strategy, c.strategy);
    EXPECT_EQ(s.manifest.optimizer, "sgd");
    EXPECT_THAT(s.manifest.state, ElementsAre("momentum_buffer"));
    EXPECT_EQ(s.manifest.learning_rate, 0.1);
    EXPECT_EQ(s.manifest.samples, 640u);
    EXPECT_EQ(s.manifest.seed, 5u);
    EXPECT_EQ(s.manifest.trained_samples, version * c.workers * 32);
    EXPECT_EQ(s.manifest.segments,
              (std::vector<DataSegment>{{32, std::vector<std::uint64_t>(c.workers, version)}}));
    ASSERT_EQ(s.manifest.marks.size(), c.workers);
    for (const auto& mark : s.manifest.marks) EXPECT_EQ(mark.sequence.value, version);
    double mean = 0;
    for (std::uint32_t r = 0; r < c.workers; ++r)
      mean += statistic(r, version) / static_cast<double>(c.workers);
    EXPECT_FLOAT_EQ(checkpoint::load_buffers(entry.folder, s.manifest)[0], static_cast<float>(mean));
  }
  EXPECT_EQ(nlohmann::json::parse(contents(run / "checkpoints/finished.json")),
            (nlohmann::json{{"version", 23}, {"why", "finished"}}));
}

// ---- resuming ----

struct Move {
  std::uint32_t from, to;  // servers
};

class Resuming : public ::testing::TestWithParam<Move> {};
INSTANTIATE_TEST_SUITE_P(Servers, Resuming,
                         ::testing::Values(Move{1, 1}, Move{2, 2}, Move{3, 3}, Move{1, 3}, Move{3, 1},
                                           Move{2, 3}),
                         [](const auto& param) {
                           return std::to_string(param.param.from) + "To" + std::to_string(param.param.to);
                         });

TEST_P(Resuming, EndsWithTheBitsOfAJobThatNeverStopped) {
  for (const char* strategy : {"sync", "async"}) {
    const auto workers = strategy == std::string("sync") ? 2u : 1u;
    const TemporaryFolder through, first, second;
    LoopbackCluster whole(true, saving(job(workers, 1, strategy), through.path()));
    run_workers_to(whole, workers, 30);
    ASSERT_EQ(whole.outcome(), Server::Outcome::kFinished);

    LoopbackCluster begins(true, saving(job(workers, GetParam().from, strategy), first.path()));
    run_workers_to(begins, workers, 17);
    ASSERT_EQ(begins.outcome(), Server::Outcome::kFinished);
    const auto folder = checkpoint::folder_of(first.path(), {17});
    LoopbackCluster resumed(false,
                            resuming(saving(job(workers, GetParam().to, strategy), second.path()), folder));
    const auto histories = run_workers_to(resumed, workers, 30);
    ASSERT_EQ(resumed.outcome(), Server::Outcome::kFinished);
    EXPECT_EQ(resumed.report().version.value, 30u);

    const auto a = saved(checkpoint::folder_of(through.path(), {30}));
    const auto b = saved(checkpoint::folder_of(second.path(), {30}));
    EXPECT_EQ(a.weights, b.weights);
    EXPECT_EQ(a.momentum, b.momentum);
    expect_is_arithmetic(b, workers);
    EXPECT_EQ(a.manifest.trained_samples, b.manifest.trained_samples);
    const std::vector<std::uint64_t> before(workers, 17), after(workers, 13);
    EXPECT_EQ(b.manifest.segments, (std::vector<DataSegment>{{32, before}, {32, after}}));
    for (const auto& history : histories) {
      EXPECT_EQ(history.start.value, 17u);
      EXPECT_EQ(history.segments, (std::vector<DataSegment>{{32, before}}));
      ASSERT_EQ(history.initial_buffers.size(), usual_part().buffers.size());
      EXPECT_FLOAT_EQ(history.initial_buffers[0], workers == 2 ? 167 : 117);  // 100 (and 200), + 17
    }
  }
}

TEST(ResumingFrom, ACheckpointThatWasWrittenOnTheWay) {
  const TemporaryFolder run, second;
  LoopbackCluster begins(true, saving(job(2, 2, "sync"), run.path(), 5));
  Watch watch(begins);
  run_workers_to(begins, 2, 9, End::kLeaves, usual_part(), [&](std::uint64_t v) {
    if (v == 7) watch.until_written(5);
  });
  watch.end();
  ASSERT_EQ(begins.outcome(), Server::Outcome::kFinished);
  LoopbackCluster resumed(
      true, resuming(saving(job(2, 1, "sync"), second.path()), checkpoint::folder_of(run.path(), {5})));
  run_workers_to(resumed, 2, 9);
  ASSERT_EQ(resumed.outcome(), Server::Outcome::kFinished);
  const auto a = saved(checkpoint::folder_of(run.path(), {9}));
  const auto b = saved(checkpoint::folder_of(second.path(), {9}));
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.momentum, b.momentum);
}

// Nothing was trained: there is nothing to keep, and nothing is overwritten.
TEST(ResumingFrom, AFinishedRunWritesNothing) {
  const TemporaryFolder run;
  LoopbackCluster begins(true, saving(job(1, 1, "sync"), run.path()));
  run_workers_to(begins, 1, 4);
  ASSERT_EQ(begins.outcome(), Server::Outcome::kFinished);
  const auto folder = checkpoint::folder_of(run.path(), {4});
  const auto before = fs::last_write_time(folder / "manifest.json");
  auto options = resuming(saving(job(1, 1, "sync"), run.path()), folder);
  options.job.max_steps = 4;
  LoopbackCluster resumed(true, options);
  const auto histories = run_workers_to(resumed, 1, 9);
  EXPECT_TRUE(histories[0].seen.empty());
  EXPECT_EQ(resumed.outcome(), Server::Outcome::kFinished);
  EXPECT_EQ(checkpoint::list(run.path()).size(), 1u);
  EXPECT_EQ(fs::last_write_time(folder / "manifest.json"), before);
}

TEST(ResumingFrom, ACheckpointOfAnotherOptimizerIsRefusedInOneLine) {
  const TemporaryFolder run;
  LoopbackCluster begins(true, saving(job(1, 1, "sync"), run.path()));
  run_workers_to(begins, 1, 2);
  ASSERT_EQ(begins.outcome(), Server::Outcome::kFinished);
  auto options = resuming(job(1, 1, "sync"), checkpoint::folder_of(run.path(), {2}));
  options.optimizer = optimizer::defaults(optimizer::Kind::kAdam);
  transport::EventLoop loop;
  EXPECT_THAT([&] { Server(loop, options, silent_log()); },
              ::testing::ThrowsMessage<UserError>(
                  AllOf(HasSubstr("step-00000002"), HasSubstr("sgd"), HasSubstr("adam"))));
}

TEST(ResumingFrom, AServerWhosePartIsDamagedEndsTheJob) {
  const TemporaryFolder run;
  LoopbackCluster begins(true, saving(job(1, 2, "sync"), run.path()));
  run_workers_to(begins, 1, 2);
  ASSERT_EQ(begins.outcome(), Server::Outcome::kFinished);
  const auto folder = checkpoint::folder_of(run.path(), {2});
  auto bytes = contents(folder / "optimizer-2-of-2.safetensors");
  bytes.back() ^= 1;
  write_file(folder / "optimizer-2-of-2.safetensors", bytes);
  LoopbackCluster resumed(true, resuming(job(1, 2, "sync"), folder));
  EXPECT_EQ(resumed.outcome(1), Server::Outcome::kCheckpointUnreadable);
  EXPECT_EQ(resumed.outcome(0), Server::Outcome::kFollowerLost);
}

// ---- failures ----

TEST(SavingFails, WhereTheFolderIsAFileAndTrainingContinues) {
  for (const std::uint32_t servers : {1u, 2u}) {
    const TemporaryFolder run;
    write_file(run / "checkpoints", "in the way");
    LoopbackCluster cluster(true, saving(job(2, servers, "sync"), run.path(), 3));
    run_workers_to(cluster, 2, 10);
    EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
    EXPECT_EQ(cluster.report().version.value, 10u);
    EXPECT_EQ(cluster.report().checkpoint.value, 0u);
    EXPECT_THAT(cluster.report().checkpoint_error, HasSubstr("checkpoints"));
    expect_near(cluster.weights(), arithmetic(2, 10).weights);
    EXPECT_EQ(contents(run / "checkpoints"), "in the way");
  }
}

// On the second server only: another file has the name of its part.
TEST(SavingFails, AtOneServerAndTheNextSucceeds) {
  const TemporaryFolder run;
  LoopbackCluster cluster(true, saving(job(2, 2, "sync"), run.path(), 5));
  fs::create_directories(checkpoint::folder_of(run.path(), {5}) / "weights-2-of-2.safetensors/x");
  Watch watch(cluster);
  std::atomic<bool> looked = false;
  std::string error;
  run_workers_to(cluster, 2, 9, End::kLeaves, usual_part(), [&](std::uint64_t v) {
    if (v != 7 || looked.exchange(true)) return;
    error = watch.until([](const auto& report) { return !report.checkpoint_error.empty(); }).checkpoint_error;
  });
  watch.end();
  EXPECT_THAT(error, HasSubstr("weights-2-of-2.safetensors"));
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
  EXPECT_EQ(cluster.report().checkpoint.value, 9u);
  EXPECT_EQ(cluster.report().checkpoint_error, "");
  ASSERT_EQ(checkpoint::list(run.path()).size(), 1u);
  EXPECT_FALSE(fs::exists(checkpoint::folder_of(run.path(), {5})));
  expect_is_arithmetic(saved(checkpoint::folder_of(run.path(), {9})), 2);
}

TEST(Losing, AllWorkersLeavesACheckpoint) {
  for (const std::uint32_t servers : {1u, 2u}) {
    const TemporaryFolder run;
    auto options = saving(job(2, servers, "sync"), run.path());
    options.members.reconnect = std::chrono::milliseconds(100);
    LoopbackCluster cluster(true, options);
    run_workers_to(cluster, 2, 6, End::kIsKilled);
    EXPECT_EQ(cluster.outcome(), Server::Outcome::kAllWorkersLost);
    const auto version = cluster.report().version.value;
    EXPECT_EQ(version, 6u);
    expect_is_arithmetic(saved(checkpoint::folder_of(run.path(), {version})), 2);
    EXPECT_THAT(contents(run / "checkpoints/finished.json"), HasSubstr("lost"));
  }
}

// The data segment keeps the steps of the lost worker, and continues to count those of the other.
TEST(Losing, OneWorkerShowsInTheWayThroughTheData) {
  const TemporaryFolder run;
  auto options = saving(job(2, 1, "sync"), run.path());
  options.members.reconnect = std::chrono::milliseconds(100);
  LoopbackCluster cluster(true, options);
  CheckpointHistory stays, dies;
  std::thread other([&] { dies = run_worker_to(cluster, 1, 3, End::kIsKilled); });
  stays = run_worker_to(cluster, 0, 8);
  other.join();
  EXPECT_EQ(cluster.outcome(), Server::Outcome::kFinished);
  const auto manifest = checkpoint::read_manifest(checkpoint::folder_of(run.path(), {8}));
  EXPECT_EQ(manifest.segments, (std::vector<DataSegment>{{32, {8, 3}}}));
  EXPECT_EQ(manifest.trained_samples, 32u * (8 + 3));
  EXPECT_FLOAT_EQ(checkpoint::load_buffers(checkpoint::folder_of(run.path(), {8}), manifest)[0],
                  statistic(0, 8));
}

}  // namespace
}  // namespace capstan
