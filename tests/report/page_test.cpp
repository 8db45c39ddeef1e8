#include "capstan/report/page.h"

#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capstan/report/chart_js.h"

#include "example.h"
#include "support/temporary_folder.h"

namespace capstan::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The text of the element with this id.
nlohmann::json data_of(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const auto begin = html.find(open) + open.size();
  return nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin), nullptr, false);
}

// Chart.js has URLs in its comments.
std::string without_chart_js(std::string html) {
  const auto at = html.find(chart_js());
  return at == std::string::npos ? html : html.erase(at, chart_js().size());
}

TEST(Page, HasThePointsOfEveryRunThatHasSome) {
  const auto data = data_of(page(example()));
  ASSERT_TRUE(data.is_object());
  EXPECT_EQ(data["target"], 0.9);
  ASSERT_EQ(data["runs"].size(), 2u);
  EXPECT_EQ(data["runs"][1]["strategy"], "async");
  EXPECT_EQ(data["runs"][1]["points"],
            (nlohmann::json{{{"seconds", 4.0}, {"samples", 10000.0}, {"value", 0.85}},
                            {{"seconds", 8.0}, {"samples", 20000.0}, {"value", 0.9}}}));
  EXPECT_NE(data["runs"][0]["colour"], data["runs"][1]["colour"]);
  auto c = example();
  c.target.reset();
  EXPECT_EQ(data_of(page(c))["target"], nullptr);
}

TEST(Page, HasTheTableTheJobAndTheVersions) {
  const auto html = without_chart_js(page(example()));
  for (const char* text : {"<title>lenet on digits: single, async, sync</title>", ">2.50</td>",
                           ">1.25 / 7</td>", "failed: server 0 is lost", "whatever the others do",
                           "<dt>threads</dt><dd>2 (single), 1 (async)</dd>", "<dt>capstan</dt><dd>0.1.0</dd>",
                           "2024-05-06 07:08"})
    EXPECT_THAT(html, HasSubstr(text));
}

TEST(Page, IsSelfContained) {
  const auto html = page(example());
  EXPECT_THAT(html, HasSubstr(std::string(chart_js())));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  const auto own = without_chart_js(html);
  EXPECT_FALSE(std::regex_search(own, std::regex("https?:|//[a-z]|<link|<img|src=|@import|url\\(")));
}

TEST(Page, ChartJsIsCompleteAndCannotEndItsElement) {
  const auto packaged = capstan::testing::contents(CAPSTAN_CHART_JS);
  ASSERT_FALSE(packaged.empty()) << CAPSTAN_CHART_JS;
  EXPECT_TRUE(chart_js() == packaged) << chart_js().size() << " bytes instead of " << packaged.size();
  EXPECT_EQ(chart_js().find("</script"), std::string_view::npos);
}

TEST(Page, EscapesNames) {
  auto c = example();
  c.runs[0].strategy = "</script><script>alert(1)</script>";
  c.runs[0].settings[1].second = "<img src=x onerror=\"alert(1)\">&";
  c.runs[2].problem = "failed: <b>\xff";
  const auto html = without_chart_js(page(c));
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html, Not(HasSubstr("<b>")));
  EXPECT_THAT(html, HasSubstr("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;&amp;"));
  EXPECT_EQ(data_of(html)["runs"][0]["strategy"], c.runs[0].strategy);
}

}  // namespace
}  // namespace capstan::report
