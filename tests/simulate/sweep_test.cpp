#include "capstan/simulate/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

namespace capstan::simulate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

Cluster plain() {
  Cluster c;
  c.elements = 1'000'000;
  c.batch = 10;
  c.rounds = 100;
  c.memory_rate = Cluster::kUnlimited;
  return c;
}

TEST(SweepRange, Doubles) {
  EXPECT_THAT(SweepRange::parse("workers=1..8").values, ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(SweepRange::parse("workers=3..20").values, ElementsAre(3, 6, 12, 20));
  EXPECT_THAT(SweepRange::parse("servers=5..5").values, ElementsAre(5));
  EXPECT_EQ(SweepRange::parse("servers=5..5").axis, SweepRange::Axis::kServers);
  for (const char* text :
       {"", "workers", "workers=", "workers=1", "workers=1..", "workers=..4", "workers=0..4", "workers=4..1",
        "workers=1..70000", "bytes=1..2", "workers=1..4x", "1..4=workers"})
    EXPECT_THROW(SweepRange::parse(text), UserError) << text;
}

TEST(Sweep, IsLinearUntilTheLinkIsSaturated) {
  auto c = plain();
  c.bandwidth = 1e8;  // at most 25 pushes per second; one worker makes 1 / 0.18
  std::size_t seen = 0;
  const auto curves = sweep(c, {"async"}, SweepRange::parse("workers=1..32"), 100'000,
                            [&](std::size_t done, std::size_t all, const std::string&) {
                              EXPECT_EQ(done, seen++);
                              EXPECT_EQ(all, 6u);
                            });
  ASSERT_EQ(curves.size(), 1u);
  ASSERT_EQ(curves[0].points.size(), 6u);
  for (const auto& p : curves[0].points) {
    const double expected = std::min(p.at / 0.18, 25.0);
    EXPECT_NEAR(p.prediction.updates_per_second, expected, 0.02 * expected) << p.at;
    EXPECT_NEAR(p.efficiency, expected * 0.18 / p.at, 0.02) << p.at;
    EXPECT_EQ(p.bottleneck.limit, p.at <= 4 ? Limit::kComputing : Limit::kServerLinks) << p.at;
  }
  EXPECT_THAT(curves[0].verdict,
              HasSubstr("at most 250 samples/s, nearly reached with 8 workers; scales to 4 workers"));
  EXPECT_THAT(curves[0].verdict, HasSubstr("Bottleneck at 32: the servers' links"));
}

TEST(Sweep, ReportsThatNothingScales) {
  auto c = plain();
  c.bandwidth = 1e8;
  c.compute = Distribution::constant(0.001);
  const auto curves = sweep(c, {"async"}, SweepRange::parse("workers=4..8"), 1000, {});
  EXPECT_THAT(curves[0].verdict, HasSubstr("never 80 % of linear. Bottleneck at 8:"));
}

TEST(Sweep, SkipsValuesThatAStrategyRejects) {
  const auto curves = sweep(plain(), {"batch:4", "sync"}, SweepRange::parse("workers=1..8"), 1000, {});
  ASSERT_EQ(curves[0].points.size(), 2u);
  EXPECT_EQ(curves[0].points[0].at, 4u);
  EXPECT_THAT(curves[0].missing, HasSubstr("batch:4 needs 4 workers, but the job has 2"));
  EXPECT_EQ(curves[1].points.size(), 4u);
  EXPECT_EQ(curves[1].missing, "");
  EXPECT_THROW(sweep(plain(), {"batch:9"}, SweepRange::parse("workers=1..8"), 1000, {}), UserError);
}

TEST(Sweep, AlsoSweepsServers) {
  auto c = plain();
  c.workers = 64;
  c.bandwidth = 1e8;
  const auto curves = sweep(c, {"async"}, SweepRange::parse("servers=1..4"), 100'000, {});
  ASSERT_EQ(curves[0].points.size(), 3u);
  EXPECT_NEAR(curves[0].points[0].prediction.updates_per_second, 25, 0.5);
  EXPECT_NEAR(curves[0].points[2].prediction.updates_per_second, 100, 2);
  // Twice the servers, twice the samples: the last point is needed. Nothing is said about linear scaling,
  // which is one of workers.
  EXPECT_THAT(curves[0].verdict,
              MatchesRegex("at most (9[89][0-9]|10[01][0-9]) samples/s, nearly reached with 4 servers\\. "
                           "Bottleneck at 4: the servers' links .*"));
}

// Two workers of 1 / 0.18 pushes per second each do not saturate one server, so that more do not help.
TEST(Sweep, FindsTheFewestServersThatAreEnough) {
  auto c = plain();
  c.workers = 2;
  c.bandwidth = 1e8;
  const auto curves = sweep(c, {"async"}, SweepRange::parse("servers=1..4"), 1000, {});
  EXPECT_THAT(curves[0].verdict, StartsWith("at most 111 samples/s, nearly reached with 1 server. "));
}

TEST(SpeedAlone, IsOneWorkersWithoutFailuresOrSlowness) {
  auto c = plain();
  c.workers = 8;
  c.slowness = {{0, 10}};
  c.failures = 1;
  EXPECT_NEAR(speed_alone(c, "sync"), 100, 1e-6);
  EXPECT_NEAR(speed_alone(c, "batch:8"), 100, 1e-6);  // which a single worker could not fill
  c.latency = 0.05;
  EXPECT_NEAR(speed_alone(c, "backup:3"), 10 / 0.2, 1e-6);
  EXPECT_NEAR(speed_alone(c, "decoupled-diloco:9:4:1s"), 90 / 1.0, 1e-6);
}

}  // namespace
}  // namespace capstan::simulate
