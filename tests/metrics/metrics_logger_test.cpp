#include "capstan/lab/metrics_logger.h"

#include <atomic>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace capstan::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A clock that a test sets; a tick is a millisecond.
std::int64_t ticks = 0;
MetricsLogger::Clock::time_point now() {
  return MetricsLogger::Clock::time_point() + std::chrono::milliseconds(ticks);
}

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "no error";
}

// Starts at `from`, ends at `to`.
void record(MetricsLogger& logger, const char* type, MetricKey key, const char* name, std::int64_t from,
            std::int64_t to) {
  ticks = from;
  logger.record_start(type, key, name);
  ticks = to;
  logger.record_end(type, key);
}

TEST(MetricsLogger, GivesTheTimesByTypeAndName) {
  MetricsLogger logger(now);
  record(logger, "forward_metric", {0, 0}, "forward_pass", 10, 13);
  record(logger, "hook_future_metric", {0, 1}, "rpc_sparse", 20, 27);
  record(logger, "hook_future_metric", {0, 0}, "rpc_dense", 21, 22);
  record(logger, "forward_metric", {0, 1}, "forward_pass", 30, 34);
  const auto series = logger.series();
  ASSERT_EQ(series.size(), 3u);
  EXPECT_EQ(series[0].type, "forward_metric");
  EXPECT_EQ(series[0].name, "forward_pass");
  EXPECT_EQ(series[0].unit, "ms");
  EXPECT_THAT(series[0].values, ElementsAre(3, 4));
  EXPECT_EQ(series[1].name, "rpc_dense");
  EXPECT_THAT(series[1].values, ElementsAre(1));
  EXPECT_EQ(series[2].name, "rpc_sparse");
  EXPECT_THAT(series[2].values, ElementsAre(7));
}

TEST(MetricsLogger, HasWholeMeasurementsAndValues) {
  MetricsLogger logger(now);
  const auto at = [](std::int64_t tick) {
    return MetricsLogger::Clock::time_point() + std::chrono::milliseconds(tick);
  };
  logger.record("b_metric", {0, 0}, "known", at(3), at(8));
  EXPECT_EQ(error_of([&] {
              logger.record_end("b_metric", {0, 0});
            }),
            "metric b_metric,known, key 0,0: ended twice");
  logger.record_value("a_metric", "depth", "ops", 4);
  logger.record_value("a_metric", "depth", "ops", 2);
  const auto series = logger.series();
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series[0].name, "depth");
  EXPECT_EQ(series[0].unit, "ops");
  EXPECT_THAT(series[0].values, ElementsAre(4, 2));
  EXPECT_THAT(series[1].values, ElementsAre(5));
  logger.clear();
  EXPECT_THAT(logger.series(), IsEmpty());
  logger.set_enabled(false);
  logger.record("b_metric", {0, 1}, "known", at(3), at(8));
  logger.record_value("a_metric", "depth", "ops", 4);
  EXPECT_THAT(logger.series(), IsEmpty());
}

TEST(MetricsLogger, AValueIsANumberOfAtLeastZero) {
  MetricsLogger logger(now);
  for (const double value : {-1.0, std::nan(""), static_cast<double>(INFINITY)})
    EXPECT_THAT(error_of([&] { logger.record_value("a_metric", "depth", "ops", value); }),
                ::testing::MatchesRegex("metric a_metric,depth: .* is not a number of at least 0"));
  EXPECT_THAT(logger.series(), IsEmpty());
}

TEST(MetricsLogger, MeasurementsOverlap) {
  MetricsLogger logger(now);
  ticks = 1;
  logger.record_start("hook", {3, 0}, "rpc");
  ticks = 2;
  logger.record_start("hook", {3, 1}, "rpc");
  ticks = 5;
  logger.record_end("hook", {3, 0});
  ticks = 9;
  logger.record_end("hook", {3, 1});
  EXPECT_THAT(logger.series().front().values, ElementsAre(4, 7));
}

TEST(MetricsLogger, NamesTheMetricOfAMistake) {
  MetricsLogger logger(now);
  record(logger, "batch_level_metric", {1, 2}, "batch_all", 0, 1);
  EXPECT_EQ(error_of([&] {
              logger.record_end("batch_level_metric", {1, 2});
            }),
            "metric batch_level_metric,batch_all, key 1,2: ended twice");
  EXPECT_EQ(error_of([&] {
              logger.record_start("batch_level_metric", {1, 2}, "batch_all");
            }),
            "metric batch_level_metric,batch_all, key 1,2: started twice");
  EXPECT_EQ(error_of([&] {
              logger.record_end("batch_level_metric", {2, 1});
            }),
            "metric batch_level_metric, key 2,1: ended without a start");
  EXPECT_EQ(error_of([&] {
              logger.record_end("other", {1, 2});
            }),
            "metric other, key 1,2: ended without a start");
  EXPECT_THAT(logger.series().front().values, ElementsAre(1));  // mistakes change nothing
  logger.record_start("batch_level_metric", {7, 8}, "batch_all");
  EXPECT_EQ(error_of([&] { (void)logger.series(); }),
            "metric batch_level_metric,batch_all, key 7,8: not ended");
}

TEST(MetricsLogger, ClearedItTakesTheSameKeysAgain) {
  MetricsLogger logger(now);
  record(logger, "a", {0, 0}, "old", 0, 1);
  logger.clear();
  EXPECT_THAT(logger.series(), IsEmpty());
  record(logger, "a", {0, 0}, "new", 0, 2);
  const auto series = logger.series();
  ASSERT_EQ(series.size(), 1u);
  EXPECT_EQ(series[0].name, "new");
  EXPECT_THAT(series[0].values, ElementsAre(2));
}

TEST(MetricsLogger, RecordsNothingWhileItIsOff) {
  MetricsLogger logger(now);
  logger.set_enabled(false);
  record(logger, "a", {0, 0}, "off", 0, 1);
  logger.record_end("a", {5, 5});
  EXPECT_THAT(logger.series(), IsEmpty());
  logger.set_enabled(true);
  record(logger, "a", {0, 0}, "on", 0, 1);
  EXPECT_EQ(logger.series().size(), 1u);
}

// More keys than the first hash table has slots; key (a, b) takes a + 1000·b ticks.
TEST(MetricsLogger, KeepsManyMeasurements) {
  MetricsLogger logger(now);
  std::vector<double> expected;
  for (std::uint64_t a = 0; a < 300; ++a) {
    for (std::uint64_t b = 0; b < 20; ++b) {
      const auto span = static_cast<std::int64_t>(a + 1000 * b);
      record(logger, "m", {a, b}, "n", 7, 7 + span);
      expected.push_back(static_cast<double>(span));
    }
  }
  EXPECT_EQ(logger.series().front().values, expected);
  EXPECT_EQ(error_of([&] { logger.record_start("m", {0, 0}, "n"); }), "metric m,n, key 0,0: started twice");
}

// Each batch's buckets end on another thread, while this thread starts the next batch.
TEST(MetricsLogger, AMeasurementMayEndOnAnotherThread) {
  constexpr std::uint64_t kBatches = 500, kBuckets = 4;
  MetricsLogger logger;
  std::atomic<std::uint64_t> started = 0;
  std::thread ends([&] {
    for (std::uint64_t batch = 0; batch < kBatches; ++batch) {
      for (auto seen = started.load(); seen <= batch; seen = started.load()) started.wait(seen);
      for (std::uint64_t bucket = 0; bucket < kBuckets; ++bucket) logger.record_end("hook", {batch, bucket});
    }
  });
  for (std::uint64_t batch = 0; batch < kBatches; ++batch) {
    for (std::uint64_t bucket = 0; bucket < kBuckets; ++bucket)
      logger.record_start("hook", {batch, bucket}, "rpc_dense");
    started.store(batch + 1);
    started.notify_one();
  }
  ends.join();
  const auto series = logger.series();
  ASSERT_EQ(series.size(), 1u);
  EXPECT_EQ(series[0].values.size(), kBatches * kBuckets);
  EXPECT_THAT(series[0].values, ::testing::Each(::testing::Ge(0)));
}

}  // namespace
}  // namespace capstan::lab
