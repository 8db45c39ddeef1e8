#include "capstan/report/lab_page.h"

#include <numeric>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capstan/report/chart_js.h"
#include "capstan/report/lab_charts.h"

#include "browser.h"
#include "lab_example.h"

namespace capstan::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<LabFile> one(std::vector<LabConfiguration> configurations) {
  return {{"lab.json", lab_result(std::move(configurations))}};
}

nlohmann::json charts_of(const std::vector<LabFile>& files) {
  return nlohmann::json::parse(json_line(lab_charts(files).data));
}

std::string without_chart_js(std::string html) {
  const auto at = html.find(chart_js());
  return at == std::string::npos ? html : html.erase(at, chart_js().size());
}

LabConfiguration failed(std::int64_t trainers) {
  auto c = lab_configuration(trainers, {});
  c.error = "trainer 3 <died>";
  return c;
}

TEST(LabCharts, HaveThroughputWithIntervalsAndTheStep) {
  const auto bars =
      charts_of(one({lab_configuration(1, {100}), failed(3), lab_configuration(2, {190, 210})}))["bars"];
  ASSERT_EQ(bars.size(), 2u);
  EXPECT_EQ(bars[0]["label"], "trainers=1");
  EXPECT_EQ(bars[0]["mean"], 100);
  EXPECT_EQ(bars[0]["low"], nullptr);
  EXPECT_EQ(bars[1]["mean"], 200);
  EXPECT_EQ(bars[1]["low"], 190);
  EXPECT_EQ(bars[1]["high"], 210);
  EXPECT_EQ(bars[1]["step"], (nlohmann::json{1, 2, 4, 2, 1}));
  EXPECT_NE(bars[0]["colour"], bars[1]["colour"]);
}

TEST(LabCharts, ThroughputsThatAreFarApartAreShownByTheirLogarithm) {
  const auto logarithmic = [](const std::vector<LabFile>& files) { return charts_of(files)["logarithmic"]; };
  EXPECT_EQ(logarithmic(one({lab_configuration(1, {100}), lab_configuration(2, {2000})})), false);
  EXPECT_EQ(logarithmic(one({lab_configuration(1, {100}), lab_configuration(2, {2001})})), true);
  EXPECT_EQ(logarithmic(one({failed(1)})), false);
}

// The values are 0.5, 1, 1.5 and 2 ms; a bin includes its lower limit.
TEST(LabCharts, CountStragglersInBins) {
  const auto straggler = charts_of(one({lab_configuration(2, {100, 100})}))["straggler"];
  EXPECT_EQ(straggler["bins"], (nlohmann::json{"0.5–0.7", "0.7–1", "1–1.5", "1.5–2", "2–3"}));
  ASSERT_EQ(straggler["series"].size(), 1u);
  EXPECT_EQ(straggler["series"][0]["percent"], (nlohmann::json{25, 0, 25, 25, 25}));
}

TEST(LabCharts, HaveFewBinsForAnyTimes) {
  auto c = lab_configuration(2, {100});
  c.runs[0].straggler_ms = {0, 0.0001, 0.004, 1, 1, 1, 2093, 3e6};
  const auto straggler = charts_of(one({c}))["straggler"];
  EXPECT_LE(straggler["bins"].size(), 30u);
  EXPECT_EQ(straggler["bins"].front(), "0.001–0.002");
  EXPECT_EQ(straggler["bins"].back(), "2e+06–5e+06");
  const auto percent = straggler["series"][0]["percent"].get<std::vector<double>>();
  EXPECT_EQ(percent.size(), straggler["bins"].size());
  EXPECT_EQ(percent.front(), 25);
  EXPECT_EQ(percent.back(), 12.5);
  EXPECT_EQ(std::accumulate(percent.begin(), percent.end(), 0.0), 100);
}

TEST(LabCharts, HaveNoStragglersWithoutLateGradients) {
  auto c = lab_configuration(1, {100});
  c.runs[0].straggler_ms = {0, 0};
  EXPECT_EQ(charts_of(one({c}))["straggler"], nullptr);
  c.runs[0].straggler_ms.clear();
  EXPECT_EQ(charts_of(one({c}))["straggler"], nullptr);
}

// A curve for each server; the faster one has 120 samples/s with one trainer.
TEST(LabCharts, HaveScalingWithTheIdealLine) {
  std::vector<LabConfiguration> all;
  for (const auto& [trainers, server, rate] :
       {std::tuple{4, "a", 300.0}, {1, "a", 100.0}, {1, "b", 120.0}, {4, "b", 280.0}}) {
    auto c = lab_configuration(trainers, {rate, rate});
    c.name += server;
    c.axis = {{"server", server}, {"trainers", std::int64_t{trainers}}};
    all.push_back(c);
  }
  const auto scaling = charts_of(one(all))["scaling"];
  EXPECT_EQ(scaling["ideal"], (nlohmann::json{{{"x", 1.0}, {"y", 120.0}}, {{"x", 4.0}, {"y", 480.0}}}));
  ASSERT_EQ(scaling["curves"].size(), 2u);
  EXPECT_EQ(scaling["curves"][0]["label"], "server=a");
  EXPECT_EQ(scaling["curves"][0]["points"],
            (nlohmann::json{{{"mean", 100.0}, {"low", 100.0}, {"high", 100.0}, {"trainers", 1.0}},
                            {{"mean", 300.0}, {"low", 300.0}, {"high", 300.0}, {"trainers", 4.0}}}));
  EXPECT_EQ(charts_of(one({lab_configuration(2, {100})}))["scaling"], nullptr);
  all[0].axis = all[1].axis = all[2].axis = all[3].axis = {{"server", "a"}};
  EXPECT_EQ(charts_of(one(all))["scaling"], nullptr);
}

// As in the result of all experiments.
TEST(LabCharts, ExperimentsHaveCurvesOfTheirOwn) {
  auto result = lab_result({lab_configuration(1, {100}), lab_configuration(2, {200})});
  result.experiment = "all";
  for (const std::int64_t trainers : {1, 2}) {
    auto& other = result.configurations.emplace_back(lab_configuration(trainers, {50}));
    other.name = "other [trainers=" + std::to_string(trainers) + "]";
  }
  const auto curves = charts_of({{"lab.json", result}})["scaling"]["curves"];
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_EQ(curves[0]["label"], "ddp_cpu_rpc");
  EXPECT_EQ(curves[1]["label"], "other");
  for (const auto& curve : curves) EXPECT_EQ(curve["points"].size(), 2u);
}

TEST(LabCharts, NameTheResultOfAConfigurationIfThereAreSeveral) {
  const std::vector<LabFile> files = {{"x", lab_result({lab_configuration(1, {1})})},
                                      {"y", lab_result({lab_configuration(1, {2})})}};
  const auto bars = charts_of(files)["bars"];
  EXPECT_EQ(bars[0]["label"], "trainers=1 · A");
  EXPECT_EQ(bars[1]["label"], "trainers=1 · B");
  EXPECT_NE(bars[0]["colour"], bars[1]["colour"]);
}

TEST(LabPage, HasTheTablesTheOptionsAndTheMachine) {
  const auto html = without_chart_js(
      lab_page(one({lab_configuration(1, {100}), lab_configuration(2, {190, 210}), failed(4)}), {}));
  for (const char* text :
       {"<title>Strategy lab: ddp_cpu_rpc</title>", "<td data-name=\"95 % interval\">190.0–210.0</td>",
        "<td data-name=\"backward\">40.0</td>", "failed: trainer 3 &lt;died&gt;", "<h3>all trainers</h3>",
        "<td>param_index_straggler</td>", "<td data-name=\"stdev\">0.6455</td>",
        "Run 1 of 2, the one with the median throughput", "<dt>batch_size</dt><dd>32</dd>",
        "<dt>ntrainer</dt><dd>1 (trainers=1), 2 (trainers=2), 4 (trainers=4)</dd>",
        "<dt>machine</dt><dd>Xeon, 2 cores, 25.3 GB</dd>", "<dt>libtorch</dt><dd>1.13.0</dd>"})
    EXPECT_THAT(html, HasSubstr(text));
  EXPECT_THAT(html, Not(HasSubstr("server_config_path")));  // not given
}

TEST(LabPage, ShowsDifferencesAndNotes) {
  const std::vector<LabFile> files = {
      {"before", lab_result({lab_configuration(1, {100, 100}), lab_configuration(2, {1})})},
      {"after", lab_result({lab_configuration(1, {125, 150})})}};
  const auto html = without_chart_js(lab_page(files, compare(files, false)));
  for (const char* text :
       {"after against before, samples/s", "<td data-name=\"95 % interval\">1.250–1.500</td>",
        "<td data-name=\"verdict\">faster</td>", "<li>ddp_cpu_rpc [trainers=2]: not in after</li>",
        "Throughput of A, before", "Throughput of B, after", "<h2>Result B</h2>"})
    EXPECT_THAT(html, HasSubstr(text));
}

TEST(LabPage, IsSelfContained) {
  const auto html = lab_page(one({lab_configuration(1, {100})}), {});
  EXPECT_THAT(html, HasSubstr(std::string(chart_js())));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  EXPECT_FALSE(std::regex_search(without_chart_js(html),
                                 std::regex("https?:|//[a-z]|<link|<img|src=|@import|url\\(")));
}

TEST(LabPage, EscapesNames) {
  auto c = lab_configuration(2, {100, 110});
  c.name = "</script><script>alert(1)</script>";
  c.options[1].second = "<img onerror=1>";
  c.runs[0].metrics[0].rank = "<b>rank";
  const std::vector<LabFile> files = {{"<i>a", lab_result({c})}, {"<i>b", lab_result({c, failed(4)})}};
  const auto html = without_chart_js(lab_page(files, compare(files, false)));
  for (const char* text : {"<script>alert", "<img", "<b>", "<i>", "<died>"})
    EXPECT_THAT(html, Not(HasSubstr(text)));
}

// On a monitor and on a telephone: no error, nothing wider than the screen, and every plot has something.
TEST(LabPage, IsDrawnByABrowser) {
  if (!capstan::testing::has_browser()) GTEST_SKIP() << "chromium is not installed";
  auto long_name = lab_configuration(4, {300, 330, 340});
  long_name.name = "ddp_cpu_sparse_rpc_gloo_allreduce_with_a_name_that_is_longer_than_a_telephone_is_wide";
  const std::vector<LabFile> files = {
      {"before",
       lab_result({lab_configuration(1, {100}), lab_configuration(2, {190, 210}), long_name, failed(8)})},
      {"after", lab_result({lab_configuration(1, {100, 120}), long_name})}};
  const auto html = lab_page(files, compare(files, false));
  for (const int width : {1280, 400}) {
    const auto found = capstan::testing::shown_in_browser(html, width);
    ASSERT_TRUE(found) << width;
    EXPECT_EQ((*found)["problems"], nlohmann::json::array()) << width;
    EXPECT_LE((*found)["overflow"], 0) << width;
    if (width == 400) {
      EXPECT_LE((*found)["scrolling"], 0);
    }
    const auto& charts = (*found)["charts"];
    ASSERT_EQ(charts.size(), 4u);
    struct Expected {
      const char* id;
      int sets;
      const char* tooltip;
    };
    const Expected expected[] = {{"throughput", 1, "trainers=1 · A; 100 samples/s"},
                                 {"step", 5, "trainers=1 · A; data: 1 ms, 10.0 %"},
                                 {"straggler", 5, "0.5–0.7 ms; trainers=1 · A: 25.0 %"},
                                 {"scaling", 5, "1 trainers; ddp_cpu_rpc · A: 100 samples/s"}};
    for (std::size_t i = 0; i < charts.size(); ++i) {
      EXPECT_EQ(charts[i]["id"], expected[i].id);
      EXPECT_EQ(charts[i]["sets"], expected[i].sets) << expected[i].id;
      EXPECT_EQ(charts[i]["tooltip"], expected[i].tooltip);
      EXPECT_GT(charts[i]["painted"], 1000) << expected[i].id << " at " << width;
      EXPECT_GT(charts[i]["width"], width / 3) << expected[i].id;
      EXPECT_LT(charts[i]["width"], width) << expected[i].id;
    }
  }
  // With a logarithmic axis.
  const auto apart = capstan::testing::shown_in_browser(
      lab_page(one({lab_configuration(1, {10}), lab_configuration(2, {90'000, 95'000})}), {}), 400);
  ASSERT_TRUE(apart);
  EXPECT_EQ((*apart)["problems"], nlohmann::json::array());
  EXPECT_EQ((*apart)["charts"][0]["tooltip"], "trainers=1; 10 samples/s");
  EXPECT_GT((*apart)["charts"][0]["painted"], 1000);
}

// Nothing was measured.
TEST(LabPage, HasNoPlotsWithoutRuns) {
  const auto html = lab_page(one({failed(2)}), {});
  EXPECT_THAT(without_chart_js(html), Not(HasSubstr("<canvas")));
  EXPECT_THAT(html, HasSubstr("failed: trainer 3 &lt;died&gt;"));
}

}  // namespace
}  // namespace capstan::report
