#include "capstan/report/scaling.h"

#include <cmath>
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capstan/report/chart_js.h"

namespace capstan::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Scaling example() {
  Scaling s;
  s.title = "lenet <on> 1 to 4 workers: sync, async";
  s.axis = "workers";
  s.curves = {
      {"sync",
       {{1, 100, 1, 0, 0, "computing"}, {4, 200, 0.5, 0, 0, "servers' links"}},
       "it does </script> end"},
      {"async", {{1, 100, 1, 0, 0, "computing"}, {4, 380, 0.95, 3, 0.015, "own links"}}, "at most 380"}};
  s.settings = {{"bandwidth", "1.25 GB/s"}};
  return s;
}

std::string without_chart_js(std::string html) {
  const auto at = html.find(chart_js());
  return at == std::string::npos ? html : html.erase(at, chart_js().size());
}

nlohmann::json data_of(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const auto begin = html.find(open) + open.size();
  return nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin), nullptr, false);
}

TEST(ScalingPage, HasEveryCurveAndTheLineOfOneWorker) {
  const auto data = data_of(scaling_page(example()));
  ASSERT_TRUE(data.is_object());
  EXPECT_EQ(data["axis"], "workers");
  ASSERT_EQ(data["curves"].size(), 2u);
  EXPECT_EQ(data["curves"][1]["points"][1],
            (nlohmann::json{
                {"at", 4.0}, {"samples_per_second", 380.0}, {"percent", 95.0}, {"bottleneck", "own links"}}));
  EXPECT_NE(data["curves"][0]["colour"], data["curves"][1]["colour"]);
  EXPECT_EQ(data["linear"], (nlohmann::json{{{"x", 0.0}, {"y", 100.0}}, {{"x", 2.0}, {"y", 400.0}}}));
  auto servers = example();
  servers.axis = "servers";
  EXPECT_EQ(data_of(scaling_page(servers))["linear"], nullptr);
}

TEST(ScalingPage, HasVerdictsTablesAndTheCluster) {
  const auto html = without_chart_js(scaling_page(example()));
  for (const char* text :
       {"<h1>lenet &lt;on&gt; 1 to 4 workers: sync, async</h1>", "it does &lt;/script&gt; end",
        "<td data-name=\"samples/s\">380</td>", "<td data-name=\"dropped\">1.5 %</td>",
        "<td data-name=\"limited by\">own links</td>", "<dt>bandwidth</dt><dd>1.25 GB/s</dd>"})
    EXPECT_THAT(html, HasSubstr(text));
}

TEST(ScalingPage, IsSelfContained) {
  const auto html = scaling_page(example());
  EXPECT_THAT(html, HasSubstr(std::string(chart_js())));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  EXPECT_FALSE(std::regex_search(without_chart_js(html),
                                 std::regex("https?:|//[a-z]|<link|<img|src=|@import|url\\(")));
}

}  // namespace
}  // namespace capstan::report
