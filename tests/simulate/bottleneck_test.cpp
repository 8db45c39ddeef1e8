#include "capstan/simulate/bottleneck.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/simulate/simulation.h"

namespace capstan::simulate {
namespace {

using ::testing::HasSubstr;

// 4 MB, one server, 100 ms per batch; everything else takes no time.
Cluster plain(std::uint32_t workers) {
  Cluster c;
  c.workers = workers;
  c.elements = 1'000'000;
  c.rounds = 50;
  c.memory_rate = Cluster::kUnlimited;
  return c;
}

Bottleneck of(const Cluster& c, const std::string& strategy) {
  return find_bottleneck(c, strategy, simulate(c, strategy::parse(strategy, c.workers)), 10'000);
}

TEST(Bottleneck, IsComputingWithoutOtherLimits) {
  const auto b = of(plain(8), "sync");
  EXPECT_EQ(b.limit, Limit::kComputing);
  EXPECT_EQ(b.sentence, "computing (100 % of the workers' time)");
  EXPECT_EQ(relief(plain(8), "sync", b.limit, 10'000), "with 16 workers 2.00 times");
}

TEST(Bottleneck, IsTheServersLinksIfTheyAreSaturated) {
  auto c = plain(16);
  c.bandwidth = 1e8;  // 25 pushes per second
  const auto b = of(c, "async");
  EXPECT_EQ(b.limit, Limit::kServerLinks);
  // A single worker: 100 ms and twice 40 ms, so 89 per second together.
  EXPECT_NEAR(b.gain, 16 / 0.18 / 25, 0.2);
  EXPECT_THAT(b.sentence, HasSubstr("the servers' links"));
  EXPECT_EQ(relief(c, "async", b.limit, 10'000).value_or("").substr(0, 17), "with 2 servers 1.");
}

TEST(Bottleneck, IsTheOwnLinkIfItTakesLongest) {
  auto c = plain(1);
  c.bandwidth = 2e7;  // 200 ms each way
  c.server_bandwidth = Cluster::kUnlimited;
  const auto b = of(c, "sync");
  EXPECT_EQ(b.limit, Limit::kOwnLinks);
  EXPECT_NEAR(b.gain, 5, 1e-6);
  EXPECT_EQ(relief(c, "sync", b.limit, 10'000), "with links of 40 MB/s 1.67 times");
}

TEST(Bottleneck, IsTheUpdateIfMemoryIsSlow) {
  auto c = plain(4);
  c.memory_rate = 4e7;  // 100 ms for each of 8 passes over the model
  const auto b = of(c, "sync");
  EXPECT_EQ(b.limit, Limit::kUpdates);
  EXPECT_NEAR(b.gain, 9, 1e-6);
}

TEST(Bottleneck, IsTheSlowWorkerThatOthersWaitFor) {
  auto c = plain(4);
  c.slowness = {{2, 5}};
  const auto b = of(c, "sync");
  EXPECT_EQ(b.limit, Limit::kOthers);
  EXPECT_NEAR(b.gain, 5, 1e-6);
  EXPECT_THAT(b.sentence, HasSubstr("the others wait for 60 % of their time"));  // three of four wait 4/5
  EXPECT_FALSE(relief(c, "sync", b.limit, 10'000));
  EXPECT_EQ(of(c, "async").limit, Limit::kComputing);
}

TEST(Bottleneck, IsWhatHelpsMostOfSeveral) {
  auto c = plain(8);
  c.slowness = {{2, 3}};
  c.memory_rate = 12 * 4e6 / 0.4;  // 0.3 s for the slowest worker, 0.4 s for the update
  const auto b = of(c, "sync");
  EXPECT_EQ(b.limit, Limit::kUpdates);
  EXPECT_NEAR(b.gain, 0.7 / 0.3, 1e-6);
}

TEST(Bottleneck, IsTheCoresIfWorkersShareThem) {
  auto c = plain(4);
  c.machine = SharedMachine{2, 1, 0};
  const auto b = of(c, "sync");
  EXPECT_EQ(b.limit, Limit::kCores);
  EXPECT_NEAR(b.gain, 2, 1e-6);
  EXPECT_EQ(relief(c, "sync", b.limit, 10'000), "with 4 cores 2.00 times");
}

TEST(Bottleneck, IsFailuresIfWorkersAreMostlyDown) {
  auto c = plain(4);
  c.rounds = 500;
  c.failures = 0.1;
  c.repair = 20;
  c.detection = 0;
  const auto p = simulate(c, strategy::parse("async", c.workers));
  ASSERT_GT(p.failures, 0u);
  const auto b = of(c, "async");
  EXPECT_EQ(b.limit, Limit::kFailures);
  // Without failures four workers need 0.1 s for each batch and wait for nothing.
  EXPECT_NEAR(b.gain, 4 * c.batch / 0.1 / p.samples_per_second, 1e-6);
  EXPECT_NEAR(b.gain, 3, 1);  // up for 10 s and down for 20 s, on average
  EXPECT_EQ(
      b.sentence,
      fmt::format("failures ({} of them, {} rounds lost); without that limit {:.2g} times the samples/s",
                  p.failures, p.lost_rounds, b.gain));
}

}  // namespace
}  // namespace capstan::simulate
