#include "capstan/simulate/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

namespace capstan::simulate {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(const std::string& list, std::uint32_t workers = 4) {
  try {
    (void)split_strategies(list, workers);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(SplitStrategies, KeepsTheirOrder) {
  EXPECT_THAT(split_strategies("ssp:3,sync,backup:1", 4), ElementsAre("ssp:3", "sync", "backup:1"));
}

TEST(SplitStrategies, RefusesWhatCannotBeSimulated) {
  EXPECT_EQ(refusal("sync,,async"), "--strategy sync,,async: a name is empty");
  EXPECT_EQ(refusal(""), "--strategy : a name is empty");
  EXPECT_EQ(refusal("sync,async,sync"), "--strategy sync,async,sync: sync is named twice");
  EXPECT_THAT(refusal("single"), HasSubstr("sync with --workers 1"));
  EXPECT_THAT(refusal("sync,allreduce"), HasSubstr("allreduce has no servers"));
  EXPECT_THAT(refusal("default=sync,fc*=async"), HasSubstr("groups of tensors"));
  EXPECT_THAT(refusal("backup:4"), HasSubstr("backup:4")) << "of four workers three may be left out";
  EXPECT_EQ(refusal("backup:4", 5), "");
}

// Four workers, a batch of 10 in 0.1 s. 4 MB take 0.04 s each way; the server's link carries one worker's
// after the other's. The first round takes 0.1 s + 4 × 0.04 s in + 4 × 0.04 s out. Then workers have their
// weights 0.04 s apart, so that pushes no longer meet: a round takes 4 × 0.04 s out, 0.1 s, and 0.04 s in for
// the last.
TEST(Forecast, SaysWhatLimitsAndWhatWouldHelp) {
  Cluster c;
  c.workers = 4;
  c.elements = 1'000'000;
  c.batch = 10;
  c.rounds = 100;
  c.memory_rate = Cluster::kUnlimited;
  c.bandwidth = 1e8;
  c.latency = 0;
  std::vector<std::string> lines;
  const auto made = forecast(c, {"sync", "async"}, [&](const std::string& line) { lines.push_back(line); });
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].prediction.strategy, "sync");
  EXPECT_EQ(made[1].prediction.strategy, "async");
  const double seconds = 0.42 + 99 * 0.3;
  EXPECT_NEAR(made[0].prediction.samples_per_second, 100 * 4 * 10 / seconds, 1e-6);
  EXPECT_NEAR(made[0].efficiency, 100 * 0.18 / seconds, 1e-6) << "alone a worker's round takes 0.18 s";
  EXPECT_EQ(made[0].bottleneck.limit, Limit::kServerLinks);
  EXPECT_GT(made[0].bottleneck.gain, 1.5);
  EXPECT_THAT(made[0].relief, HasSubstr("2 servers"));
  EXPECT_THAT(lines, Contains("sync: what limits it?"));
  EXPECT_THAT(lines, Contains("async: what limits it?"));
}

TEST(Forecast, OfAClusterThatLacksNothingIsEfficient) {
  Cluster c;
  c.workers = 4;
  c.elements = 1000;
  c.batch = 10;
  c.rounds = 100;
  c.memory_rate = c.bandwidth = Cluster::kUnlimited;
  c.latency = 0;
  const auto made = forecast(c, {"async"}, [](const std::string&) {});
  EXPECT_NEAR(made[0].efficiency, 1, 1e-9);
  EXPECT_EQ(made[0].bottleneck.limit, Limit::kComputing);
}

}  // namespace
}  // namespace capstan::simulate
