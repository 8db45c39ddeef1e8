#include "capstan/report/page.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capstan/report/chart_js.h"

namespace capstan::report {
namespace {

// A browser obeys the policy: even a mistake in here could load nothing.
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
  td:first-child { display: block; font-weight: 600; }
}
@media print { .panel { break-inside: avoid; } }
</style>
)";

// After the colours of Okabe and Ito, which people who confuse red and green can tell apart; bright enough
// for a dark page.
constexpr const char* kColours[] = {"#2f8fd0", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"};

const char* colour(std::size_t run) {
  return kColours[run % std::size(kColours)];
}

constexpr const char* kScript = R"(<script>
const data = JSON.parse(document.getElementById('data').textContent);
const charts = [];
const seconds = v => v.toLocaleString('en', {maximumFractionDigits: 2});
const whole = v => v.toLocaleString('en', {maximumFractionDigits: 0});

function plot(id, axis, name, show) {
  const all = data.runs.flatMap(run => run.points.map(p => p[axis]));
  const sets = data.runs.map(run => ({
    label: run.strategy, data: run.points.map(p => ({x: p[axis], y: 100 * p.accuracy})),
    borderColor: run.colour, backgroundColor: run.colour, borderWidth: 2, pointRadius: 3, pointHoverRadius: 6,
  }));
  if (data.target !== null && all.length > 0)
    sets.push({label: 'target', data: [{x: 0, y: 100 * data.target}, {x: Math.max(...all), y: 100 * data.target}],
               borderColor: '#8a94a3', backgroundColor: '#8a94a3', borderWidth: 1.5, borderDash: [6, 5],
               pointRadius: 0, pointHoverRadius: 0});
  const scale = title => ({title: {display: true, text: title}, ticks: {}, grid: {}});
  charts.push(new Chart(document.getElementById(id), {
    type: 'line', data: {datasets: sets},
    options: {
      animation: false, responsive: true, maintainAspectRatio: false, parsing: false,
      interaction: {mode: 'nearest', intersect: false},
      scales: {x: {type: 'linear', min: 0, ...scale(name)},
               y: {type: 'linear', suggestedMax: 100, ...scale('test accuracy, %')}},
      plugins: {legend: {labels: {usePointStyle: true, boxWidth: 8, boxHeight: 8}},
                tooltip: {callbacks: {title: items => items.length ? show(items[0].parsed.x) + ' ' + name : '',
                                      label: item => ' ' + item.dataset.label + ': ' +
                                                     item.parsed.y.toFixed(2) + ' %'}}},
    },
  }));
}

function dress() {
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

plot('over-time', 'seconds', 'seconds', seconds);
plot('over-samples', 'samples', 'samples', whole);
dress();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', dress);
</script>
)";

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

// In a script element only "<" could end it.
std::string json_in_html(const nlohmann::ordered_json& value) {
  const auto plain = value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string out;
  for (const char c : plain) out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return out;
}

std::string data_element(const Comparison& comparison) {
  auto runs = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const auto& run = comparison.runs[i];
    if (run.points.empty()) continue;
    auto points = nlohmann::ordered_json::array();
    for (const auto& p : run.points)
      points.push_back({{"seconds", p.seconds}, {"samples", p.samples}, {"accuracy", p.accuracy}});
    runs.push_back({{"strategy", run.strategy}, {"colour", colour(i)}, {"points", points}});
  }
  nlohmann::ordered_json target;
  if (comparison.target_accuracy) target = *comparison.target_accuracy;
  return fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n",
                     json_in_html({{"target", target}, {"runs", runs}}));
}

std::string table_element(const Table& table) {
  std::string out = "<div class=\"panel wide\">\n<table>\n<thead><tr>";
  for (const auto& name : table.head) out += fmt::format("<th>{}</th>", escaped(name));
  out += "</tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const auto& row = table.rows[i];
    out += fmt::format("<tr><td><span class=\"mark\" style=\"background:{}\"></span>{}</td>", colour(i),
                       escaped(row.cells[0]));
    for (std::size_t c = 1; c < row.cells.size(); ++c)
      out += fmt::format("<td data-name=\"{}\">{}</td>", escaped(table.head[c]), escaped(row.cells[c]));
    if (row.cells.size() == 1)
      out += fmt::format("<td class=\"problem\" colspan=\"{}\">{}</td>", table.head.size() - 1,
                         escaped(row.problem));
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>\n</div>\n";
}

std::string list_element(const std::string& title, const Settings& settings) {
  auto out = fmt::format("<section class=\"panel\">\n<h2>{}</h2>\n<dl>\n", title);
  for (const auto& [key, value] : settings)
    out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(key), escaped(value));
  return out + "</dl>\n</section>\n";
}

std::string value_of(const Settings& settings, const std::string& key) {
  for (const auto& [name, value] : settings)
    if (name == key) return value;
  return "";
}

}  // namespace

std::string page(const Comparison& comparison) {
  const auto settings = common_settings(comparison);
  std::vector<std::string> strategies;
  for (const auto& run : comparison.runs) strategies.push_back(run.strategy);
  const auto title = escaped(fmt::format("{} on {}: {}", value_of(settings, "network"),
                                         value_of(settings, "dataset"), fmt::join(strategies, ", ")));
  std::string out = kHead;
  out += fmt::format("<title>{}</title>\n", title);
  out += kStyle;
  out += fmt::format(
      "</head>\n<body>\n<h1>{}</h1>\n<p>The same job, seed and samples under each strategy. {}</p>\n", title,
      escaped(comparison.when));
  out += R"(<div class="plots">
<section class="panel"><h2>Test accuracy over time</h2><div class="plot"><canvas id="over-time"></canvas></div></section>
<section class="panel"><h2>Test accuracy over samples</h2><div class="plot"><canvas id="over-samples"></canvas></div></section>
</div>
)";
  out += table_element(table(comparison));
  out += "<div class=\"facts\">\n";
  out += list_element("The job", settings);
  out += list_element("What it ran on", comparison.versions);
  out += "</div>\n";
  out += data_element(comparison);
  out += "<script>";
  out += chart_js();
  out += "</script>\n";
  out += kScript;
  return out + "</body>\n</html>\n";
}

}  // namespace capstan::report
