#include "capstan/report/scaling.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "capstan/base/json.h"
#include "capstan/report/html.h"

namespace capstan::report {
namespace {

// The x axis is logarithmic, since the values double.
constexpr const char* kScript =
    R"(const number = v => v.toLocaleString('en', {maximumFractionDigits: v < 10 ? 2 : 0});

function plot(id, key, title, logarithmic, linear) {
  const sets = data.curves.map(curve => ({
    label: curve.strategy, data: curve.points.map(p => ({x: Math.log2(p.at), y: p[key], point: p})),
    borderColor: curve.colour, backgroundColor: curve.colour, borderWidth: 2, pointRadius: 3, pointHoverRadius: 6,
  }));
  if (linear)
    sets.push({label: 'linear', data: linear, borderColor: '#8a94a3', backgroundColor: '#8a94a3', borderWidth: 1.5,
               borderDash: [6, 5], pointRadius: 0, pointHoverRadius: 0});
  const scale = (name, ticks) => ({title: {display: true, text: name}, ticks, grid: {}});
  const power = v => Number.isInteger(Math.round(1e6 * Math.log10(v)) / 1e6);
  charts.push(new Chart(document.getElementById(id), {
    type: 'line', data: {datasets: sets},
    options: {
      animation: false, responsive: true, maintainAspectRatio: false, parsing: false,
      interaction: {mode: 'nearest', intersect: false},
      scales: {x: {type: 'linear', ...scale(data.axis, {stepSize: 1, callback: v => Number.isInteger(v) ? number(2 ** v) : ''})},
               y: logarithmic ? {type: 'logarithmic', ...scale(title, {callback: v => power(v) ? number(v) : ''})}
                              : {type: 'linear', min: 0, suggestedMax: 100, ...scale(title, {})}},
      plugins: {legend: {labels: {usePointStyle: true, boxWidth: 8, boxHeight: 8}},
                tooltip: {callbacks: {title: items => items.length ? number(2 ** items[0].parsed.x) + ' ' + data.axis : '',
                                      label: item => ' ' + item.dataset.label + ': ' + number(item.parsed.y),
                                      afterLabel: item => item.raw.point ? ' limited by ' + item.raw.point.bottleneck : ''}}},
    },
  }));
}

plot('throughput', 'samples_per_second', 'samples/s', true, data.linear);
plot('efficiency', 'percent', '% of linear', false, null);
)";

Json data_of(const Scaling& scaling) {
  auto curves = Json::array();
  double alone = 0, first = 0, last = 0;  // samples/s of one worker, of the fastest strategy
  for (std::size_t i = 0; i < scaling.curves.size(); ++i) {
    auto points = Json::array();
    for (const auto& p : scaling.curves[i].points) {
      points.push_back({{"at", p.at},
                        {"samples_per_second", p.samples_per_second},
                        {"percent", 100 * p.efficiency},
                        {"bottleneck", p.bottleneck}});
      if (p.efficiency > 0) alone = std::max(alone, p.samples_per_second / p.efficiency / p.at);
      first = first == 0 ? p.at : std::min(first, p.at);
      last = std::max(last, p.at);
    }
    curves.push_back({{"strategy", scaling.curves[i].strategy}, {"colour", colour(i)}, {"points", points}});
  }
  Json linear;
  if (scaling.axis == "workers" && alone > 0) {
    linear = Json::array();
    for (const auto at : {first, last}) linear.push_back({{"x", std::log2(at)}, {"y", alone * at}});
  }
  return {{"axis", scaling.axis}, {"linear", linear}, {"curves", curves}};
}

std::string verdicts_element(const Scaling& scaling) {
  std::string out = "<section class=\"panel\">\n<h2>Bottlenecks</h2>\n<dl>\n";
  for (std::size_t i = 0; i < scaling.curves.size(); ++i)
    out += fmt::format("<dt><span class=\"mark\" style=\"background:{}\"></span>{}</dt><dd>{}</dd>\n",
                       colour(i), escaped(scaling.curves[i].strategy), escaped(scaling.curves[i].verdict));
  return out + "</dl>\n</section>\n";
}

std::string table_element(const Scaling& scaling, std::size_t index) {
  constexpr const char* kNames[] = {"samples/s", "of linear", "staleness", "dropped", "limited by"};
  const auto& curve = scaling.curves[index];
  auto out = fmt::format(
      "<section class=\"panel wide\">\n<h2><span class=\"mark\" style=\"background:{}\"></span>{}</h2>\n"
      "<table>\n<thead><tr><th>{}</th>",
      colour(index), escaped(curve.strategy), escaped(scaling.axis));
  for (const auto* name : kNames) out += fmt::format("<th>{}</th>", name);
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& p : curve.points) {
    const std::string cells[] = {
        fmt::format("{:.{}f}", p.samples_per_second, p.samples_per_second < 100 ? 1 : 0),
        fmt::format("{:.0f} %", 100 * p.efficiency), fmt::format("{:.1f}", p.staleness_mean),
        fmt::format("{:.1f} %", 100 * p.dropped), p.bottleneck};
    out += fmt::format("<tr><td>{:g}</td>", p.at);
    for (std::size_t i = 0; i < std::size(cells); ++i)
      out += fmt::format("<td data-name=\"{}\">{}</td>", kNames[i], escaped(cells[i]));
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>\n</section>\n";
}

}  // namespace

std::string scaling_page(const Scaling& scaling) {
  auto out = html_begin(scaling.title);
  out += "<p>Predicted by capstan simulate: the real strategies and placement on a fake clock.</p>\n";
  out += R"(<div class="plots">
<section class="panel"><h2>Throughput</h2><div class="plot"><canvas id="throughput"></canvas></div></section>
<section class="panel"><h2>Scaling efficiency</h2><div class="plot"><canvas id="efficiency"></canvas></div></section>
</div>
)";
  out += verdicts_element(scaling);
  for (std::size_t i = 0; i < scaling.curves.size(); ++i) out += table_element(scaling, i);
  out += list_element("The cluster", scaling.settings);
  return out + html_end(data_of(scaling), kScript);
}

}  // namespace capstan::report
