#include "capstan/report/comparison.h"

#include <algorithm>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "example.h"
#include "support/temporary_folder.h"

namespace capstan::report {
namespace {

using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Comparison, SpeedUpIsOverSingle) {
  auto c = example();
  EXPECT_EQ(speedup(c, c.runs[0]), 1.0);
  EXPECT_EQ(speedup(c, c.runs[1]), 2.5);
  EXPECT_EQ(speedup(c, c.runs[2]), std::nullopt);
  c.runs[0].has_result = false;
  EXPECT_EQ(speedup(c, c.runs[1]), std::nullopt);
  c.runs.erase(c.runs.begin());
  EXPECT_EQ(speedup(c, c.runs[0]), std::nullopt);
}

TEST(Comparison, TheTargetIsReachedAtTheFirstEvaluationThatHasIt) {
  auto c = example();
  EXPECT_EQ(seconds_to_target(c, c.runs[0]), 20.0);
  EXPECT_EQ(seconds_to_target(c, c.runs[1]), 8.0);
  EXPECT_EQ(seconds_to_target(c, c.runs[2]), std::nullopt);
  c.target = 0.85;
  EXPECT_EQ(seconds_to_target(c, c.runs[1]), 4.0);
  c.target = 0.96;
  EXPECT_EQ(seconds_to_target(c, c.runs[0]), std::nullopt);
  c.target.reset();
  EXPECT_EQ(seconds_to_target(c, c.runs[0]), std::nullopt);
}

TEST(Comparison, SettingsShowDifferences) {
  EXPECT_THAT(common_settings(example()), ElementsAre(Pair("network", "lenet"), Pair("dataset", "digits"),
                                                      Pair("threads", "2 (single), 1 (async)")));
}

TEST(Comparison, TextIsATableOf80Columns) {
  const auto c = example();
  std::istringstream lines(text(table(c)));
  std::vector<std::string> found;
  for (std::string line; std::getline(lines, line);) {
    // Continuation bytes of UTF-8 take no column.
    EXPECT_LE(std::ranges::count_if(line, [](unsigned char b) { return (b & 0xc0) != 0x80; }), 80) << line;
    found.push_back(line);
  }
  EXPECT_THAT(
      found, ElementsAre("strategy            seconds samples/s speed-up  accuracy   to 90 % stale avg/max",
                         "single                 20.0      1000     1.00   95.00 %    20.0 s             —",
                         "async                   8.0      2500     2.50   90.00 %     8.0 s      1.25 / 7",
                         "sync               failed: server 0 is lost (killed by signal 9): training cann…"));
}

TEST(Comparison, TextShowsMissingValues) {
  auto c = example();
  c.target.reset();
  c.runs.erase(c.runs.begin());
  EXPECT_THAT(text(table(c)),
              HasSubstr("async                   8.0      2500        —   90.00 %         —      1.25 / 7"));
  c.runs[0].strategy = "decoupled-diloco:500:3:2s";
  EXPECT_THAT(text(table(c)),
              HasSubstr("decoupled-diloco:…      8.0      2500        —   90.00 %         —      1.25 / 7"));
}

TEST(Comparison, PointsAreTheEvaluationsOfARun) {
  const TemporaryFolder folder;
  write_file(
      folder / "metrics.jsonl",
      R"({"kind":"progress","step":1,"seconds":0.5,"samples":64,"train_loss":2.3})"
      "\n"
      R"({"kind":"evaluation","epoch":1.0,"step":23,"seconds":1.5,"samples":1438,"test_loss":0.25,"test_accuracy":0.5})"
      "\nnot JSON\n"
      R"({"kind":"evaluation","epoch":2.0,"step":46,"seconds":3.0,"samples":2876,"test_loss":null,"test_accuracy":0.1})"
      "\n"
      R"({"ok":true,"seconds":3.0})"
      "\n"
      R"({"kind":"evalu)");
  const auto points = read_points(folder / "metrics.jsonl", testing::classification_metrics());
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].seconds, 1.5);
  EXPECT_EQ(points[0].samples, 1438);
  EXPECT_EQ(points[0].values[0], 0.5);
  EXPECT_EQ(points[0].values[1], 0.25);
  EXPECT_EQ(points[1].seconds, 3.0);
  EXPECT_EQ(points[1].values[0], 0.1);
  EXPECT_THAT(read_points(folder / "none", testing::classification_metrics()), IsEmpty());
}

TEST(Comparison, SettingsAreTheLinesOfAConfiguration) {
  const TemporaryFolder folder;
  write_file(folder / "config.toml",
             "network = 'lenet'\nlr = 0.02\n\ndata-dir = \"a b\"\nnesterov = true\nweights = ''\n\n# Not "
             "given\n[derived]\nthreads = 1\n");
  EXPECT_THAT(read_settings(folder / "config.toml"),
              ElementsAre(Pair("network", "lenet"), Pair("lr", "0.02"), Pair("data-dir", "a b"),
                          Pair("nesterov", "true"), Pair("threads", "1")));
}

}  // namespace
}  // namespace capstan::report
