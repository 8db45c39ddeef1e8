#include "capstan/report/page.h"

#include <fmt/format.h>

#include "capstan/base/json.h"
#include "capstan/metrics/evaluation.h"
#include "capstan/report/html.h"

namespace capstan::report {
namespace {

constexpr const char* kScript = R"(const seconds = v => v.toLocaleString('en', {maximumFractionDigits: 2});
const shown = v => v === null ? null : data.percent ? 100 * v : v;
const whole = v => v.toLocaleString('en', {maximumFractionDigits: 0});

function plot(id, axis, name, show) {
  const all = data.runs.flatMap(run => run.points.map(p => p[axis]));
  const sets = data.runs.map(run => ({
    label: run.strategy, data: run.points.map(p => ({x: p[axis], y: shown(p.value)})),
    borderColor: run.colour, backgroundColor: run.colour, borderWidth: 2, pointRadius: 3, pointHoverRadius: 6,
  }));
  if (data.target !== null && all.length > 0)
    sets.push({label: 'target', data: [{x: 0, y: shown(data.target)}, {x: Math.max(...all), y: shown(data.target)}],
               borderColor: '#8a94a3', backgroundColor: '#8a94a3', borderWidth: 1.5, borderDash: [6, 5],
               pointRadius: 0, pointHoverRadius: 0});
  const scale = title => ({title: {display: true, text: title}, ticks: {}, grid: {}});
  charts.push(new Chart(document.getElementById(id), {
    type: 'line', data: {datasets: sets},
    options: {
      animation: false, responsive: true, maintainAspectRatio: false, parsing: false,
      interaction: {mode: 'nearest', intersect: false},
      scales: {x: {type: 'linear', min: 0, ...scale(name)},
               y: {type: 'linear', ...(data.percent ? {suggestedMax: 100} : {}),
                   ...scale('test ' + data.metric + (data.percent ? ', %' : ''))}},
      plugins: {legend: {labels: {usePointStyle: true, boxWidth: 8, boxHeight: 8}},
                tooltip: {callbacks: {title: items => items.length ? show(items[0].parsed.x) + ' ' + name : '',
                                      label: item => ' ' + item.dataset.label + ': ' +
                                                     (data.percent ? item.parsed.y.toFixed(2) + ' %'
                                                                   : item.parsed.y.toFixed(4))}}},
    },
  }));
}

plot('over-time', 'seconds', 'seconds', seconds);
plot('over-samples', 'samples', 'samples', whole);
)";

Json data_of(const Comparison& comparison) {
  auto runs = Json::array();
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const auto& run = comparison.runs[i];
    if (run.points.empty()) continue;
    auto points = Json::array();
    for (const auto& p : run.points)
      points.push_back({{"seconds", p.seconds}, {"samples", p.samples}, {"value", p.values.front()}});
    runs.push_back({{"strategy", run.strategy}, {"colour", colour(i)}, {"points", points}});
  }
  Json target;
  if (comparison.target) target = *comparison.target;
  const auto metric = metric_of(comparison);
  return {
      {"metric", metrics::title_of(metric)}, {"percent", metric.percent}, {"target", target}, {"runs", runs}};
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
  const auto title = fmt::format("{} on {}: {}", value_of(settings, "network"), value_of(settings, "dataset"),
                                 fmt::join(strategies, ", "));
  auto out = html_begin(title);
  out += fmt::format("<p>The same job, seed and samples under each strategy. {}</p>\n",
                     escaped(comparison.when));
  out += fmt::format(
      R"(<div class="plots">
<section class="panel"><h2>Test {0} over time</h2><div class="plot"><canvas id="over-time"></canvas></div></section>
<section class="panel"><h2>Test {0} over samples</h2><div class="plot"><canvas id="over-samples"></canvas></div></section>
</div>
)",
      escaped(metrics::title_of(metric_of(comparison))));
  std::vector<std::string> colours;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) colours.emplace_back(colour(i));
  out += "<div class=\"panel wide\">\n" + table_element(table(comparison), colours) + "</div>\n";
  out += "<div class=\"facts\">\n";
  out += list_element("The job", settings);
  out += list_element("Hardware and software", comparison.versions);
  out += "</div>\n";
  return out + html_end(data_of(comparison), kScript);
}

}  // namespace capstan::report
