#include "capstan/simulate/simulation.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

namespace capstan::simulate {
namespace {

constexpr double kBytes = 4e6;  // of the model

// One server; transfers, latency and updates take no time unless a test sets them.
Cluster plain(std::uint32_t workers, double compute) {
  Cluster c;
  c.workers = workers;
  c.elements = 1'000'000;
  c.batch = 10;
  c.rounds = 50;
  c.compute = Distribution::constant(compute);
  c.memory_rate = std::numeric_limits<double>::infinity();
  return c;
}

Prediction run(const Cluster& cluster, const std::string& strategy) {
  return simulate(cluster, strategy::parse(strategy, cluster.workers));
}

double sum(const Prediction& p) {
  return std::accumulate(p.spent.begin(), p.spent.end(), 0.0);
}

TEST(Simulation, OneWorkersRoundIsTheSumOfItsParts) {
  auto c = plain(1, 0.3);
  c.bandwidth = 1e8;  // 40 ms for the model
  c.latency = 0.002;
  c.memory_rate = 1e9;  // one gradient read, weights and momentum read and written: 5 × 4 ms
  for (const char* strategy : {"sync", "async", "ssp:0", "batch:1"}) {
    const auto p = run(c, strategy);
    const double round = 0.3 + 2 * (0.002 + 0.04) + 0.02;
    EXPECT_NEAR(p.seconds, 50 * round, 1e-9) << strategy;
    EXPECT_NEAR(p.updates_per_second, 1 / round, 1e-9) << strategy;
    EXPECT_NEAR(p.samples_per_second, 10 / round, 1e-8) << strategy;
    EXPECT_EQ(p.updates, 50u) << strategy;
    EXPECT_NEAR(p.part(TimeCategory::kCompute), 0.3 / round, 1e-9) << strategy;
    EXPECT_NEAR(p.part(TimeCategory::kOwnLink), 0.084 / round, 1e-9) << strategy;
    EXPECT_NEAR(p.part(TimeCategory::kUpdate), 0.02 / round, 1e-9) << strategy;
    EXPECT_NEAR(p.part(TimeCategory::kServerLink) + p.part(TimeCategory::kOthers), 0, 1e-9) << strategy;
    EXPECT_NEAR(p.updating, 0.02 / round, 1e-9) << strategy;
    EXPECT_NEAR(p.incoming, 0.04 / round, 1e-9) << strategy;
    EXPECT_NEAR(p.outgoing, 0.04 / round, 1e-9) << strategy;
    EXPECT_DOUBLE_EQ(p.pushed_bytes, 50 * kBytes) << strategy;
    EXPECT_DOUBLE_EQ(p.pulled_bytes, 50 * kBytes) << strategy;
  }
}

TEST(Simulation, AdamsStateIsReadAndWrittenToo) {
  auto c = plain(1, 0.3);
  c.memory_rate = 1e9;
  c.state_tensors = 2;
  EXPECT_NEAR(run(c, "sync").seconds, 50 * (0.3 + 7 * 0.004), 1e-9);
}

TEST(Simulation, ServersShareTheWork) {
  auto c = plain(1, 0.3);
  c.elements = 4 * 1024 * 100;  // 1,638,400 bytes in 400 pages
  c.servers = 4;
  c.memory_rate = 1e8;
  c.bandwidth = 1e8;
  const double bytes = 1'638'400;
  // A worker's own link still carries all of it.
  EXPECT_NEAR(run(c, "sync").seconds, 50 * (0.3 + 2 * bytes / 1e8 + 5 * bytes / 4 / 1e8), 1e-9);
  c.servers = 3;  // 134 pages are the most that one has
  EXPECT_NEAR(run(c, "sync").seconds, 50 * (0.3 + 2 * bytes / 1e8 + 5 * 134 * 4096 / 1e8), 1e-9);
}

TEST(Simulation, WithoutBytesAnyNumberOfEqualWorkersIsAsFastAsOne) {
  for (const std::uint32_t workers : {1, 2, 37, 512}) {
    const auto p = run(plain(workers, 0.25), "sync");
    EXPECT_NEAR(p.seconds, 50 * 0.25, 1e-9);
    EXPECT_NEAR(p.samples_per_second, workers * 10 / 0.25, 1e-6);
    EXPECT_EQ(p.staleness_max, 0u);
  }
}

// E max of N = ∫ (1 - F(t)^N) dt.
double mean_of_maximum(double median, double sigma, int n) {
  constexpr double kStep = 1e-4;
  double mean = 0;
  for (double t = kStep / 2; t < 40 * median; t += kStep) {
    const double f = 0.5 * std::erfc(-std::log(t / median) / sigma / std::numbers::sqrt2);
    mean += (1 - std::pow(f, n)) * kStep;
  }
  return mean;
}

TEST(Simulation, SyncTakesAsLongAsTheSlowestOfEachStep) {
  for (const int workers : {1, 4, 64}) {
    auto c = plain(static_cast<std::uint32_t>(workers), 0);
    c.compute = Distribution::parse("", "lognormal(0.2,0.5)");
    c.rounds = 5000;
    const double expected = mean_of_maximum(0.2, 0.5, workers);
    const auto p = run(c, "sync");
    EXPECT_NEAR(p.seconds / 5000, expected, 0.015 * expected) << workers;
    // All others wait for the slowest worker.
    const double mean = 0.2 * std::exp(0.125);
    EXPECT_NEAR(p.part(TimeCategory::kOthers), 1 - mean / expected, 0.015) << workers;
  }
}

TEST(Simulation, ASaturatedLinkOfTheServersSetsTheThroughput) {
  auto c = plain(64, 0.01);
  c.bandwidth =
      1e8;  // 40 ms per push: at most 25 pushes per second, where 64 workers could make 64 every 90 ms
  c.rounds = 200;
  const auto p = run(c, "async");
  EXPECT_NEAR(p.updates_per_second, 1e8 / kBytes, 0.01 * 25);
  EXPECT_GT(p.incoming, 0.99);
  EXPECT_GT(p.part(TimeCategory::kServerLink), 0.9);
  c.servers = 4;  // four times as many, 245 of 977 pages each at most
  EXPECT_NEAR(run(c, "async").updates_per_second, 1e8 / (245 * 4096), 1);
}

TEST(Simulation, SyncOverOneServersLinkAddsUpAllPushes) {
  auto c = plain(8, 0.1);
  c.bandwidth = 1e8;
  // In the first round all push at once and queue. Later the answers are sent one after the other, so pushes
  // arrive without queueing.
  EXPECT_NEAR(run(c, "sync").seconds, (0.1 + 8 * 0.04) + 49 * (0.1 + 9 * 0.04) + 8 * 0.04, 1e-9);
}

TEST(Simulation, AsyncWorkersPushInProportionToTheirSpeed) {
  auto c = plain(4, 0.1);
  c.slowness = {{1, 2}, {2, 4}, {3, 8}};
  c.rounds = 1000;
  const auto p = run(c, "async");
  // 10 + 5 + 2.5 + 1.25 pushes per second.
  EXPECT_NEAR(p.updates_per_second, 18.75, 0.05);
  EXPECT_NEAR(p.part(TimeCategory::kCompute), 1, 1e-9);
}

TEST(Simulation, SspHoldsTheFastBackToTheSlowest) {
  auto c = plain(4, 0.1);
  c.slowness = {{3, 8}};
  c.rounds = 1000;
  const auto p = run(c, "ssp:3");
  EXPECT_NEAR(p.updates_per_second, 4 / 0.8, 0.05);  // all at the pace of the slowest
  EXPECT_NEAR(p.part(TimeCategory::kOthers), 0.75 * 7 / 8, 0.01);
  EXPECT_NEAR(run(c, "ssp:inf").updates_per_second, 3 / 0.1 + 1 / 0.8, 0.1);
}

TEST(Simulation, AsyncStalenessIsTheNumberOfOtherWorkers) {
  for (const std::uint32_t workers : {1u, 2u, 5u, 33u}) {
    auto c = plain(workers, 0.1);
    const auto p = run(c, "async");
    EXPECT_EQ(p.staleness_max, workers - 1);
    EXPECT_EQ(quantile(p.staleness, 0.5), workers - 1);
    EXPECT_NEAR(p.staleness_mean, workers - 1, 0.02 * workers);  // the first pushes are fresher
  }
}

TEST(Simulation, BackupKeepsTheFastWorkersPace) {
  auto c = plain(5, 0.1);
  c.slowness = {{2, 10}};
  c.rounds = 400;
  const auto p = run(c, "backup:1");
  EXPECT_NEAR(p.updates_per_second, 10, 0.05);
  EXPECT_NEAR(static_cast<double>(p.dropped), static_cast<double>(p.updates) / 10,
              2);  // those of the slow worker
  EXPECT_NEAR(run(c, "sync").updates_per_second, 1, 1e-6);
}

TEST(Simulation, LocalStepsAreComputedBetweenPushes) {
  auto c = plain(3, 0.1);
  c.bandwidth = std::numeric_limits<double>::infinity();
  c.latency = 0.05;
  const auto p = run(c, "local-sgd:8");
  EXPECT_NEAR(p.seconds, 50 * (0.8 + 0.1), 1e-9);
  EXPECT_NEAR(p.samples_per_second, 3 * 8 * 10 / 0.9, 1e-6);
  EXPECT_EQ(p.updates, 50u);
  c.samples = 240;  // 3 workers with batches of 10: 8 steps per epoch
  EXPECT_NEAR(run(c, "fedavg:2").seconds, 50 * (1.6 + 0.1), 1e-9);
}

TEST(Simulation, DecoupledDilocoWaitsForItsGrace) {
  auto c = plain(3, 0.1);
  c.slowness = {{2, 100}};
  c.rounds = 40;
  // Two push at 0.2 s; 0.3 s later, without the third, the update is made.
  const auto p = run(c, "decoupled-diloco:2:2:0.3s");
  EXPECT_NEAR(p.updates_per_second, 2, 0.05);
}

TEST(Simulation, FedBuffCountsTheStalenessOfAccumulatedPushes) {
  auto c = plain(6, 0.1);
  const auto p = run(c, "fedbuff:3:1:1");
  EXPECT_EQ(p.applied, p.updates * 3);
  EXPECT_EQ(p.part(TimeCategory::kOthers), 0);
  // Six pushes at the same time make two updates. In the first round the first three have staleness 0, the
  // others 1. Later, two updates happen between a worker's pull and its push, one where its push completed a
  // sum, for which it waited.
  EXPECT_THAT(p.staleness, ::testing::ElementsAre(3, 3 + 49 * 2, 49 * 4));
}

TEST(Simulation, ALostWorkerDelaysOthersOnlyUntilItIsDetected) {
  auto c = plain(4, 0.1);
  c.failures = 1.0 / 100;
  c.repair = 20;
  c.detection = 0;
  c.rounds = 60'000;
  const auto p = run(c, "sync");
  // Up for 100 s, down for 20 s, on average.
  EXPECT_NEAR(p.part(TimeCategory::kDown), 20.0 / 120, 0.02);
  EXPECT_NEAR(static_cast<double>(p.failures), p.seconds * 4 / 120, 0.2 * p.seconds * 4 / 120);
  // After a failure all begin the next step together: a late worker adds at most its own step.
  EXPECT_GT(p.updates_per_second, 9.5);
  EXPECT_LE(p.updates_per_second, 10.0001 + static_cast<double>(p.failures) / p.seconds);
  EXPECT_NEAR(sum(p), 1, 1e-9);
}

TEST(Simulation, WorkersThatNeverFinishARoundAreAnError) {
  auto c = plain(4, 100);
  c.failures = 1;
  c.repair = 0;
  EXPECT_THROW(run(c, "sync"), UserError);
}

TEST(Simulation, WorkersShareTheCores) {
  auto c = plain(4, 0.1);
  c.machine = SharedMachine{.cores = 2, .threads = 1};
  auto p = run(c, "sync");
  EXPECT_NEAR(p.updates_per_second, 1 / 0.2, 1e-6);  // half as fast
  EXPECT_NEAR(p.part(TimeCategory::kCompute), 0.5, 1e-6);
  EXPECT_NEAR(p.part(TimeCategory::kCores), 0.5, 1e-6);
  EXPECT_NEAR(p.cores, 1, 1e-6);
  EXPECT_EQ(p.pulled_bytes, 0);  // read in place
  EXPECT_NEAR(run(c, "async").updates_per_second, 20, 0.01);
  c.machine->cores = 4;
  EXPECT_NEAR(run(c, "sync").updates_per_second, 10, 1e-6);
  c.machine->threads = 2;  // each uses two cores if they are free
  EXPECT_NEAR(run(c, "sync").updates_per_second, 5, 1e-6);
}

TEST(Simulation, UpdatesNeedCoresAndMemoryToo) {
  auto c = plain(2, 0.1);
  c.machine = SharedMachine{.cores = 2, .threads = 1};
  c.servers = 4;  // which share one memory
  c.memory_rate = 1e9;
  // Two gradients, weights and momentum: 6 × 4 ms, while no worker computes.
  EXPECT_NEAR(run(c, "sync").seconds, 50 * (0.1 + 6 * 0.004), 1e-9);
  c.workers = 1;
  c.machine->cores = 1;
  EXPECT_NEAR(run(c, "async").seconds, 50 * (0.1 + 5 * 0.004), 1e-9);  // a single worker: in place
}

TEST(Simulation, TheSameSeedGivesTheSamePrediction) {
  auto c = plain(16, 0);
  c.compute = Distribution::parse("", "lognormal(0.1,0.7)");
  c.bandwidth = 1e9;
  c.failures = 0.01;
  c.repair = 1;
  for (const char* strategy : {"sync", "async", "ssp:2", "backup:2", "fedbuff:4"}) {
    const auto a = run(c, strategy), b = run(c, strategy);
    EXPECT_EQ(a.seconds, b.seconds) << strategy;
    EXPECT_EQ(a.staleness, b.staleness) << strategy;
    EXPECT_EQ(a.spent, b.spent) << strategy;
  }
  auto other = c;
  other.seed = 1;
  EXPECT_NE(run(c, "sync").seconds, run(other, "sync").seconds);
}

}  // namespace
}  // namespace capstan::simulate
