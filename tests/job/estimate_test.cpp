// Estimates against the bytes that servers in this process send and write.

#include "capstan/job/estimate.h"

#include <thread>

#include <gtest/gtest.h>

#include "capstan/checkpoint/checkpoint.h"
#include "support/loopback_cluster.h"
#include "support/temporary_folder.h"

namespace capstan::job {
namespace {

using testing::LoopbackCluster;
using testing::TemporaryFolder;

const FlatLayout kLayout({{"weight", {30, 100}}, {"bias", {30}}});
const std::vector<StepPhase> kTwoPhases = {{"first", {"bias"}}, {"second", {"weight"}}};
const FlatLayout kModel({{"weight", {250}}});
constexpr std::uint64_t kBytes = 1000;  // of kModel
constexpr std::uint32_t kWorkers = 3;
constexpr std::uint64_t kRounds = 6;  // pushes of each worker

config::JobConfig job(const std::string& strategy, const std::string& optimizer = "sgd") {
  config::JobConfig config;
  config.strategy = strategy;
  config.workers = kWorkers;
  config.optimizer.name = optimizer;
  return config;
}

// The traffic of a job with this configuration, and its checkpoint.
struct Measured {
  wire::StatusReport report;
  checkpoint::Manifest manifest;
};

Measured measure(const config::JobConfig& config, const std::vector<StepPhase>& phases) {
  const TemporaryFolder folder;
  server::ServerOptions options;
  options.job.strategy = config.strategy;
  options.job.workers = config.workers;
  options.optimizer = config.optimizer.spec();
  options.checkpoints = {folder / "run", 0, std::chrono::hours(1), 1};
  LoopbackCluster cluster(true, options);
  std::vector<std::jthread> workers;
  for (std::uint32_t rank = 0; rank < config.workers; ++rank) {
    workers.emplace_back([&, rank] {
      const std::vector<float> initial(kLayout.size());
      auto client = client::WorkerClient::join(cluster.worker_options(rank), cluster.connector(), kLayout,
                                               initial, {.buffers = {}, .data = {}, .phases = phases});
      ASSERT_TRUE(client) << client.status().message();
      ASSERT_TRUE((*client)->pull());
      const auto count = static_cast<std::uint32_t>(phases.size());
      for (std::uint64_t i = 0; i < kRounds; ++i) {
        client::StepReport report{.samples = 8};
        do {
          report.steps = report.phase + 1 >= count;
          ASSERT_TRUE((*client)->push_pull(report));
        } while (++report.phase < count);
      }
      (*client)->leave();
    });
  }
  workers.clear();
  Measured measured{cluster.report(), {}};
  measured.manifest =
      checkpoint::read_manifest(checkpoint::folder_of(folder / "run", measured.report.version));
  return measured;
}

// The arrays of a whole model are as many floats as the model has parameters.
std::uint64_t written_floats(const checkpoint::Manifest& manifest) {
  std::uint64_t floats = 0;
  for (const auto& piece : manifest.pieces) floats += piece.elements.size();
  return floats;
}

void expect_equal_to_an_in_process_job(const std::vector<config::JobConfig>& configs,
                                       const std::vector<StepPhase>& phases) {
  for (const auto& config : configs) {
    SCOPED_TRACE(config.strategy + " with " + config.optimizer.name);
    const auto measured = measure(config, phases);
    const auto expected = estimate(config, kLayout, phases);
    const auto updates = measured.report.version.value;
    ASSERT_GT(updates, 0u);
    // Each worker's first pull belongs to no update.
    EXPECT_EQ(measured.report.bytes_pushed + measured.report.bytes_pulled - kWorkers * kLayout.bytes(),
              updates * expected.update);
    EXPECT_EQ(measured.manifest.state, state_names(config));
    EXPECT_EQ(written_floats(measured.manifest) * sizeof(float) * kLayout.bytes() /
                  (kLayout.parameters() * sizeof(float)),
              expected.servers);
  }
}

TEST(Estimate, EqualsAnInProcessJob) {
  expect_equal_to_an_in_process_job(
      {job("sync"), job("async"), job("ssp:3"), job("dc-asgd-a"), job("sync", "adam"), job("local-sgd:5"),
       job("diloco:5", "adamw"), job("easgd:0.3:5"), job("fedavg:1")},
      {});
  expect_equal_to_an_in_process_job({job("sync"), job("async")}, kTwoPhases);
}

// A phase pushes its own tensors, and pulls all.
TEST(Estimate, OfAnUpdateCountsAllPhases) {
  constexpr std::uint64_t kAll = 4 * (3000 + 30);
  EXPECT_EQ(estimate(job("async"), kLayout).update, 2 * kAll);
  EXPECT_EQ(estimate(job("async"), kLayout, kTwoPhases).update, 4 * 30 + kAll + 4 * 3000 + kAll);
  EXPECT_EQ(estimate(job("sync"), kLayout, kTwoPhases).update, kWorkers * 3 * kAll);
  EXPECT_EQ(estimate(job("local-sgd:5"), kLayout, kTwoPhases).update, kWorkers * 2 * kAll)
      << "one push carries all tensors";
  EXPECT_EQ(estimate(job("allreduce"), kLayout, kTwoPhases).update, 2 * (2 * 2 * kAll));
}

TEST(Estimate, OfAWorkerCountsItsArrays) {
  // The gradient; the weights are read in place.
  EXPECT_EQ(estimate(job("sync"), kModel).worker, kBytes);
  // Its own copy of the weights, because servers update theirs meanwhile.
  EXPECT_EQ(estimate(job("async"), kModel).worker, 2 * kBytes);
  auto remote = job("sync");
  remote.transport = "ucx";
  EXPECT_EQ(estimate(remote, kModel).worker, 2 * kBytes);
  // Its own weights and Adam's two moments.
  EXPECT_EQ(estimate(job("diloco:5", "adamw"), kModel).worker,
            (job("diloco:5").strategy_spec().workers_idle_during_update() ? 1 : 2) * kBytes + 3 * kBytes);
}

TEST(Estimate, WithoutServersWorkersHaveEverything) {
  const auto single = estimate(job("single", "adam"), kModel);
  EXPECT_EQ(single.servers, 0u);
  EXPECT_EQ(single.worker, 4 * kBytes) << "weights, gradient, two moments";
  EXPECT_EQ(single.update, 0u);
  const auto group = estimate(job("allreduce"), kModel);
  EXPECT_EQ(group.worker, 3 * kBytes) << "weights, gradient, momentum";
  EXPECT_EQ(group.update, 2 * 2 * kBytes) << "a ring of three sends the model twice, less a third each time";
}

TEST(DryRun, IsTextOrJson) {
  const auto config = job("sync");
  const DryRun run{
      config,    3030, 500, 100, budget_steps(config, 500, nullptr), {2'400'000, 1'200'000, 7'200'000},
      {{"loss"}}};
  EXPECT_EQ(run.text(), config.to_toml() +
                            "\n# 3030 parameters, 500 training and 100 test samples\n"
                            "# 90 updates, 6 per epoch\n"
                            "# weights and optimizer state: 2.4 MB over 1 server\n"
                            "# gradient and own copies of each worker: 1.2 MB\n"
                            "# transferred: 7.2 MB per update\n");
  const auto json = run.json();
  EXPECT_TRUE(json.starts_with("{\"ok\":true,\"config\":\"network = 'lenet'"));
  EXPECT_TRUE(json.ends_with(R"("parameters":3030,"steps":90,"steps_per_epoch":6,"server_bytes":2400000,)"
                             R"("worker_bytes":1200000,"bytes_per_step":7200000,)"
                             R"("metrics":[{"name":"loss","better":"lower","percent":false}]})"))
      << json;
}

}  // namespace
}  // namespace capstan::job
