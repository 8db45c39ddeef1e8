#include "capstan/simulate/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

#include "support/temporary_folder.h"

namespace capstan::simulate {
namespace {

using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;

const ScenarioFacts kFacts = {
    [](const std::string& model) { return model == "resnet50" ? 50u : 7u; },
    [](const std::string& text) {
      return text.empty() ? std::map<std::uint32_t, double>{} : std::map<std::uint32_t, double>{{1, 3.0}};
    }};

Cluster four_workers() {
  Cluster cluster;
  cluster.workers = 4;
  return cluster;
}

Scenario scenario(const ScenarioOptions& options) {
  return make_scenario(four_workers(), options, kFacts);
}

std::string refusal(const ScenarioOptions& options) {
  try {
    (void)scenario(options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// One worker with 2 threads took 0.1 s for 20 samples, and 0.02 s to exchange a million floats.
void write_run(const TemporaryFolder& folder) {
  write_file(
      folder / "metrics.jsonl",
      R"({"ok":true,"network":"lenet","strategy":"sync","workers":1,"optimizer":"adam","steps":100,"seconds":12.0,)"
      R"("samples_per_second":166.66666666666667,"bytes_pushed":400000000,"bytes_pulled":400000000,)"
      R"("compute_seconds":9.5,"communication_seconds":2.0,"data_seconds":0.5,"resumed_from":0})"
      "\n");
  write_file(folder / "config.toml", "strategy = 'sync'\nbatch-size = 20\nthreads = 2\n");
}

TEST(Scenario, HasTheDefaultsOfACluster) {
  const auto s = scenario({});
  EXPECT_EQ(s.model, "resnet50");
  EXPECT_EQ(s.cluster.elements, 50u);
  EXPECT_EQ(s.cluster.workers, 4u);
  EXPECT_DOUBLE_EQ(s.cluster.bandwidth, 1.25e9) << "10 Gbit/s";
  EXPECT_DOUBLE_EQ(s.cluster.latency, 50e-6);
  EXPECT_DOUBLE_EQ(s.cluster.memory_rate, 10e9);
  EXPECT_FALSE(s.cluster.server_bandwidth);
  EXPECT_FALSE(s.cluster.machine);
  EXPECT_EQ(s.cluster.rounds, 1000u);
  EXPECT_DOUBLE_EQ(s.cluster.compute.mean(), 0.1);
  EXPECT_EQ(s.calibrated, "");
}

TEST(Scenario, TakesGivenOptions) {
  ScenarioOptions o;
  o.model = "lenet";
  o.compute = "0.5";
  o.bandwidth = "1GB/s";
  o.server_bandwidth = "4GB/s";
  o.latency = "1ms";
  o.failures = "1/h";
  o.repair = "2s";
  o.slow_workers = "1:3x";
  o.batch = 8;
  o.state_tensors = 2;
  o.steps = 5;
  const auto c = scenario(o).cluster;
  EXPECT_EQ(c.elements, 7u);
  EXPECT_DOUBLE_EQ(c.compute.mean(), 0.5);
  EXPECT_DOUBLE_EQ(c.bandwidth, 1e9);
  EXPECT_DOUBLE_EQ(*c.server_bandwidth, 4e9);
  EXPECT_DOUBLE_EQ(c.latency, 1e-3);
  EXPECT_DOUBLE_EQ(c.failures, 1.0 / 3600);
  EXPECT_DOUBLE_EQ(c.repair, 2);
  EXPECT_EQ(c.slowness.at(1), 3);
  EXPECT_EQ(c.batch, 8u);
  EXPECT_EQ(c.state_tensors, 2u);
  EXPECT_EQ(c.rounds, 5u);
}

TEST(Scenario, OfOneMachineHasNoLinksUnlessTheyAreGiven) {
  ScenarioOptions o;
  o.cores = 8;
  o.threads = 2;
  o.compute_memory = "3GB/s";
  const auto c = scenario(o).cluster;
  ASSERT_TRUE(c.machine);
  EXPECT_EQ(c.machine->cores, 8);
  EXPECT_EQ(c.machine->threads, 2);
  EXPECT_DOUBLE_EQ(c.machine->traffic, 3e9);
  EXPECT_EQ(c.bandwidth, Cluster::kUnlimited);
  EXPECT_EQ(c.latency, 0);
  EXPECT_EQ(c.detection, 0) << "the end of a process is detected at once";
}

TEST(Scenario, TakesTimesFromAMeasuredRun) {
  const TemporaryFolder folder;
  write_run(folder);
  ScenarioOptions o;
  o.calibrate = folder.path();
  const auto s = scenario(o);
  EXPECT_EQ(s.model, "lenet");
  EXPECT_EQ(s.cluster.elements, 1'000'000u) << "from the run, not from the layout";
  EXPECT_EQ(s.cluster.batch, 20u);
  EXPECT_EQ(s.cluster.state_tensors, 2u) << "adam's";
  EXPECT_NEAR(s.cluster.compute.mean(), 0.1, 1e-12);
  EXPECT_EQ(s.calibrated, "from " + folder.path().string() + ": 100 ms of 20 samples on 2 threads");
  o.batch = 40;
  EXPECT_NEAR(scenario(o).cluster.compute.mean(), 0.2, 1e-12) << "twice the samples";
  o.compute = "0.7";
  EXPECT_DOUBLE_EQ(scenario(o).cluster.compute.mean(), 0.7) << "the given value";
}

TEST(Scenario, SharesTheCoresOfOneMachineAmongWorkers) {
  const TemporaryFolder folder;
  write_run(folder);
  ScenarioOptions o;
  o.calibrate = folder.path();
  o.cores = 4;
  EXPECT_EQ(scenario(o).cluster.machine->threads, 1) << "4 cores, 4 workers";
  EXPECT_NEAR(scenario(o).cluster.compute.mean(), 0.2, 1e-12) << "half the threads of the run";
  EXPECT_TRUE(scenario(o).calibrated.ends_with(", exchange 20 ms"));
  o.cores = 8;
  EXPECT_EQ(scenario(o).cluster.machine->threads, 2);
  o.sweeps = true;
  EXPECT_EQ(scenario(o).cluster.machine->threads, 1) << "the number of workers is not fixed";
}

TEST(Scenario, UselessOptionsAreRejected) {
  ScenarioOptions o;
  o.spread = 1;
  EXPECT_EQ(refusal(o), "--spread needs --calibrate; otherwise use --compute \"lognormal(median,sigma)\"");
  o = {};
  o.threads = 2;
  EXPECT_EQ(refusal(o), "--threads needs --cores, the number of shared cores");
  o = {};
  o.compute_memory = "1GB/s";
  EXPECT_EQ(refusal(o), "--compute-memory needs --cores, the number of shared cores");
  o.cores = 2;
  o.compute_memory = "20GB/s";
  EXPECT_EQ(refusal(o), "--compute-memory 20GB/s: must be at most --memory-rate 10GB/s");
  o = {};
  o.compute = "0";
  EXPECT_NE(refusal(o), "");
}

}  // namespace
}  // namespace capstan::simulate
