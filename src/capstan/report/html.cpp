#include "capstan/report/html.h"

#include <fmt/format.h>

#include "capstan/base/json.h"
#include "capstan/report/chart_js.h"

namespace capstan::report {
namespace {

// The policy keeps a browser from loading anything, even after a mistake in this file.
constexpr const char* kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
      content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'">
)";

constexpr const char* kStyle = R"(<style>
:root { --text: #1c2430; --soft: #5b6675; --line: #d9dee5; --back: #ffffff; --panel: #f6f8fa; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e9ee; --soft: #9aa5b4; --line: #333b47; --back: #14181f; --panel: #1b212a; --bad: #ff8a80; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1180px; padding: 24px 20px 48px; background: var(--back); color: var(--text);
       font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 0 0 8px; }
p { margin: 0 0 20px; color: var(--soft); }
.plots { display: grid; grid-template-columns: 1fr 1fr; gap: 16px; margin-bottom: 24px; }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px;
         min-width: 0; margin-bottom: 16px; }
.plots .panel { margin: 0; }
.plot { position: relative; height: 340px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 7px 10px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
tr:last-child td { border-bottom: 0; }
th { font-weight: 600; color: var(--soft); }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
td.problem { text-align: left; white-space: normal; color: var(--bad); }
.mark { display: inline-block; width: 10px; height: 10px; border-radius: 50%; margin-right: 8px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 18px; margin: 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: 18px 0 6px; }
summary { cursor: pointer; font-weight: 600; overflow-wrap: anywhere; }
.facts { display: grid; grid-template-columns: 1fr 1fr; gap: 16px; }
.facts .panel { margin: 0; }
@media (max-width: 760px) {
  body { padding: 16px 12px 32px; }
  .plots, .facts { grid-template-columns: 1fr; }
  .plot { height: 280px; }
  thead { display: none; }
  table, tbody, tr, td { display: block; }
  tr { padding: 8px 0; border-bottom: 1px solid var(--line); }
  tr:first-child { padding-top: 0; }
  tr:last-child { padding-bottom: 0; border-bottom: 0; }
  td { display: flex; justify-content: space-between; padding: 2px 0; border: 0; }
  td::before { content: attr(data-name); color: var(--soft); }
  td:first-child { display: block; font-weight: 600; white-space: normal; overflow-wrap: anywhere; }
}
@media print { .panel { break-inside: avoid; } }
</style>
)";

// The first six follow the palette of Okabe and Ito for colour-blind readers; all are bright enough for a
// dark page.
constexpr const char* kColours[] = {"#2f8fd0", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00",
                                    "#9a7fd1", "#a6862d", "#7fb800", "#e7468a", "#2aa5a0", "#8a94a3"};

constexpr const char* kScriptBegin = R"(<script>
const data = JSON.parse(document.getElementById('data').textContent);
const charts = [];
function applyTheme() {
  const style = getComputedStyle(document.documentElement);
  const text = style.getPropertyValue('--text').trim(), soft = style.getPropertyValue('--soft').trim();
  const line = style.getPropertyValue('--line').trim();
  for (const chart of charts) {
    for (const axis of Object.values(chart.options.scales)) {
      axis.title.color = soft;
      axis.ticks.color = soft;
      axis.grid.color = line;
      axis.grid.borderColor = line;
    }
    chart.options.plugins.legend.labels.color = text;
    chart.update();
  }
}

)";

constexpr const char* kScriptEnd = R"(applyTheme();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', applyTheme);
</script>
)";

// Only "<" can end a script element.
std::string json_in_html(const Json& value) {
  const auto plain = value.dump();
  std::string out;
  for (const char c : plain) out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return out;
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

const char* colour(std::size_t run) {
  return kColours[run % std::size(kColours)];
}

std::string list_element(const std::string& title, const Settings& settings) {
  auto out = fmt::format("<section class=\"panel\">\n<h2>{}</h2>\n<dl>\n", title);
  for (const auto& [key, value] : settings)
    out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(key), escaped(value));
  return out + "</dl>\n</section>\n";
}

std::string table_element(const Table& table, const std::vector<std::string>& colours) {
  std::string out = "<table>\n<thead><tr>";
  for (const auto& name : table.head) out += fmt::format("<th>{}</th>", escaped(name));
  out += "</tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const auto& row = table.rows[i];
    out += "<tr><td>";
    if (!colours.empty())
      out += fmt::format("<span class=\"mark\" style=\"background:{}\"></span>", colours[i]);
    out += escaped(row.cells[0]) + "</td>";
    for (std::size_t c = 1; c < row.cells.size(); ++c)
      out += fmt::format("<td data-name=\"{}\">{}</td>", escaped(table.head[c]), escaped(row.cells[c]));
    if (row.cells.size() == 1)
      out += fmt::format("<td class=\"problem\" colspan=\"{}\">{}</td>", table.head.size() - 1,
                         escaped(row.problem));
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>\n";
}

std::string html_begin(const std::string& title) {
  return fmt::format("{}<title>{}</title>\n{}</head>\n<body>\n<h1>{}</h1>\n", kHead, escaped(title), kStyle,
                     escaped(title));
}

std::string html_end(const Json& data, const char* script) {
  auto out = fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n", json_in_html(data));
  out += "<script>";
  out += chart_js();
  out += "</script>\n";
  out += kScriptBegin;
  out += script;
  out += kScriptEnd;
  return out + "</body>\n</html>\n";
}

}  // namespace capstan::report
