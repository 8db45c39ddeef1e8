#include "capstan/report/lab_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "capstan/report/html.h"
#include "capstan/report/lab_charts.h"
#include "capstan/report/lab_tables.h"

namespace capstan::report {
namespace {

constexpr const char* kScript =
    R"(const parts = ['data', 'forward', 'backward', 'communication', 'optimizer'];
const partColours = ['#8a94a3', '#2f8fd0', '#009e73', '#d55e00', '#e69f00'];
const number = v => v.toLocaleString('en', {maximumSignificantDigits: 4});
const scale = (title, more) => ({title: {display: title !== '', text: title}, ticks: {}, grid: {}, ...more});
const legend = display => ({display, labels: {usePointStyle: true, boxWidth: 8, boxHeight: 8}});

// The name of a configuration stands above its bar, so that a long one has room on a narrow screen.
function nameTick(value) {
  const name = this.getLabelForValue(value), most = Math.max(8, Math.floor((this.chart.width - 30) / 6.6));
  return name.length <= most ? name : name.slice(0, most - 1) + '…';
}
const names = {...scale('', {}), ticks: {callback: nameTick, autoSkip: false, mirror: true, labelOffset: -15, padding: 0, z: 1},
               grid: {display: false}};

// Whiskers from low to high; `along` is the axis of the values.
function intervals(along, intervalOf) {
  return {id: 'intervals', afterDatasetsDraw(chart) {
    const pen = chart.ctx;
    pen.save();
    pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue('--text').trim();
    pen.lineWidth = 1.5;
    chart.data.datasets.forEach((set, s) => {
      if (!chart.isDatasetVisible(s)) return;
      chart.getDatasetMeta(s).data.forEach((element, i) => {
        const found = intervalOf(set, i);
        if (!found || found.low === null || found.low === undefined) return;
        const low = chart.scales[along].getPixelForValue(found.low), high = chart.scales[along].getPixelForValue(found.high);
        const lines = along === 'x'
          ? [[low, element.y, high, element.y], [low, element.y - 5, low, element.y + 5], [high, element.y - 5, high, element.y + 5]]
          : [[element.x, low, element.x, high], [element.x - 5, low, element.x + 5, low], [element.x - 5, high, element.x + 5, high]];
        for (const [x1, y1, x2, y2] of lines) { pen.beginPath(); pen.moveTo(x1, y1); pen.lineTo(x2, y2); pen.stroke(); }
      });
    });
    pen.restore();
  }};
}

function plot(id, type, chartData, options, plugins) {
  const canvas = document.getElementById(id);
  if (canvas) charts.push(new Chart(canvas, {type, data: chartData, plugins: plugins || [],
    options: {animation: false, responsive: true, maintainAspectRatio: false, ...options}}));
}
const intervalText = p => p.low === null ? '' : ' (95 %: ' + number(p.low) + ' to ' + number(p.high) + ')';

const highest = Math.max(...data.bars.map(b => b.high ?? b.mean));
const throughputScale = data.logarithmic
  ? scale('samples/s, logarithmic', {type: 'logarithmic', min: 10 ** Math.floor(Math.log10(Math.min(...data.bars.map(b => b.mean)) / 2)),
                                     suggestedMax: highest, ticks: {callback: v => Number.isInteger(Math.log10(v)) ? number(v) : ''}})
  : scale('samples/s', {beginAtZero: true, suggestedMax: highest});
plot('throughput', 'bar',
  {labels: data.bars.map(b => b.label),
   datasets: [{data: data.bars.map(b => b.mean), backgroundColor: data.bars.map(b => b.colour), barThickness: 13}]},
  {indexAxis: 'y', scales: {x: throughputScale, y: names},
   plugins: {legend: legend(false), tooltip: {callbacks: {
     label: item => ' ' + number(item.parsed.x) + ' samples/s' + intervalText(data.bars[item.dataIndex])}}}},
  [intervals('x', (set, i) => data.bars[i])]);

plot('step', 'bar',
  {labels: data.bars.map(b => b.label),
   datasets: parts.map((part, i) => ({label: part, data: data.bars.map(b => b.step[i]), backgroundColor: partColours[i],
                                      barThickness: 13}))},
  {indexAxis: 'y', scales: {x: scale('ms per step', {stacked: true, beginAtZero: true}), y: {...names, stacked: true}},
   plugins: {legend: legend(true), tooltip: {callbacks: {label: item => {
     const all = data.bars[item.dataIndex].step.reduce((a, b) => a + b, 0);
     return ' ' + item.dataset.label + ': ' + number(item.parsed.x) + ' ms, ' + (100 * item.parsed.x / all).toFixed(1) + ' %';
   }}}}});

if (data.straggler) plot('straggler', data.straggler.series.length > 1 ? 'line' : 'bar',
  {labels: data.straggler.bins,
   datasets: data.straggler.series.map(s => ({label: s.label, data: s.percent, backgroundColor: s.colour, borderColor: s.colour,
                                              borderWidth: 2, pointRadius: 2, barPercentage: 1, categoryPercentage: 0.95}))},
  {interaction: {mode: 'index', intersect: false},
   scales: {x: scale('ms from the first to the last gradient of a bucket', {}), y: scale('% of buckets', {beginAtZero: true})},
   plugins: {legend: legend(data.straggler.series.length > 1 && data.straggler.series.length <= 4), tooltip: {callbacks: {
     title: items => items.length ? items[0].label + ' ms' : '',
     label: item => ' ' + item.dataset.label + ': ' + item.parsed.y.toFixed(1) + ' %'}}}});

if (data.scaling) plot('scaling', 'line',
  {datasets: [...data.scaling.curves.map(c => ({label: c.label, borderColor: c.colour, backgroundColor: c.colour, borderWidth: 2,
                pointRadius: 3, data: c.points.map(p => ({x: p.trainers, y: p.mean, point: p}))})),
              {label: 'ideal', data: data.scaling.ideal, borderColor: '#8a94a3', backgroundColor: '#8a94a3', borderWidth: 1.5,
               borderDash: [6, 5], pointRadius: 0, pointHoverRadius: 0}]},
  {interaction: {mode: 'nearest', intersect: false},
   scales: {x: {type: 'linear', ...scale('trainers', {}), ticks: {precision: 0}},
            y: {type: 'linear', ...scale('samples/s', {beginAtZero: true})}},
   plugins: {legend: legend(true), tooltip: {callbacks: {
     title: items => items.length ? items[0].parsed.x + ' trainers' : '',
     label: item => ' ' + item.dataset.label + ': ' + number(item.parsed.y) + ' samples/s' +
                    (item.raw.point ? intervalText(item.raw.point) : '')}}}},
  [intervals('y', (set, i) => set.data[i].point)]);
)";

std::string canvas(const char* id, const char* title, std::size_t bars) {
  // Charts with bars for configurations grow with their number.
  const auto height = bars == 0 ? "" : fmt::format(" style=\"height:{}px\"", 110 + 42 * bars);
  return fmt::format(
      "<section class=\"panel\"><h2>{}</h2><div class=\"plot\"{}><canvas "
      "id=\"{}\"></canvas></div></section>\n",
      title, height, id);
}

std::string plots_element(const LabCharts& charts) {
  auto out = "<div class=\"plots\">\n" + canvas("throughput", "Throughput", charts.bars) +
             canvas("step", "Where a step's time goes", charts.bars);
  if (charts.has_straggler) out += canvas("straggler", "Stragglers", 0);
  if (charts.has_scaling) out += canvas("scaling", "Scaling", 0);
  return out + "</div>\n";
}

std::string titled_table(const std::string& title, const Table& table,
                         const std::vector<std::string>& colours = {}) {
  return fmt::format("<section class=\"panel wide\">\n<h2>{}</h2>\n{}</section>\n", escaped(title),
                     table_element(table, colours));
}

std::string differences_element(const LabComparison& comparison, const std::string& first) {
  std::string out;
  for (const auto& path : compared_paths(comparison))
    out += titled_table(fmt::format("{} against {}, samples/s", path, first),
                        difference_table(comparison, path));
  if (comparison.notes.empty()) return out;
  out += "<section class=\"panel\">\n<h2>Notes</h2>\n<ul>\n";
  for (const auto& note : comparison.notes) out += fmt::format("<li>{}</li>\n", escaped(note));
  return out + "</ul>\n</section>\n";
}

// Throughput and steps of one result; `first` is the number of configurations before it.
std::string tables_element(const LabFile& file, const std::string& letter, std::size_t first) {
  std::vector<std::string> colours, measured;
  for (std::size_t i = 0; i < file.result.configurations.size(); ++i) {
    colours.emplace_back(colour(first + i));
    if (is_measured(file.result.configurations[i])) measured.push_back(colours.back());
  }
  const auto suffix = letter.empty() ? "" : fmt::format(" of {}, {}", letter, file.path);
  return titled_table("Throughput" + suffix, throughput_table(file.result), colours) +
         titled_table("Where a step's time goes" + suffix, step_table(file.result), measured);
}

std::string metrics_element(const LabConfiguration& c, const std::string& label, const MetricTitles& titles) {
  if (c.runs.empty()) return "";
  const auto index = median_run(c);
  const auto& run = c.runs[index];
  auto out =
      fmt::format("<details class=\"panel wide\">\n<summary>Metrics of {}</summary>\n", escaped(label));
  if (c.runs.size() > 1)
    out +=
        fmt::format("<p>Run {} of {}, the one with the median throughput.</p>\n", index + 1, c.runs.size());
  for (const auto& rank : ranks_of(run))
    out += fmt::format("<h3>{}</h3>\n{}", escaped(rank), table_element(metrics_table(run, rank, titles)));
  return out + "</details>\n";
}

// The options of all configurations; values that differ are listed with their configurations.
Settings options_of(std::span<const LabFile> files) {
  Comparison all;
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const auto& c : files[i].result.configurations) {
      auto& run = all.runs.emplace_back();
      run.strategy = chart_label(files, i, c);
      for (const auto& [name, value] : c.options) run.settings.emplace_back(name, text_of(value));
    }
  }
  auto out = common_settings(all);
  std::erase_if(out, [](const auto& setting) { return setting.second.empty(); });  // not given
  return out;
}

Settings facts_of(const LabFile& file) {
  Settings out = {
      {"file", file.path}, {"measured", file.result.when}, {"machine", machine_text(file.result.machine)}};
  for (const auto& [name, value] : file.result.versions) out.emplace_back(name, text_of(value));
  return out;
}

std::string title_of(std::span<const LabFile> files) {
  std::vector<std::string> names;
  for (const auto& file : files)
    if (std::ranges::find(names, file.result.experiment) == names.end())
      names.push_back(file.result.experiment);
  return fmt::format("Strategy lab: {}", fmt::join(names, ", "));
}

}  // namespace

std::string lab_page(std::span<const LabFile> files, const LabComparison& comparison) {
  const bool several = files.size() > 1;
  const auto charts = lab_charts(files);
  auto out = html_begin(title_of(files));
  out +=
      "<p>Measured by capstan bench ps. Whiskers are 95 % intervals of the mean over repeated runs. "
      "Colours are those of the tables.</p>\n";
  if (charts.bars > 0) out += plots_element(charts);
  out += differences_element(comparison, files.front().path);
  std::size_t before = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    out += tables_element(files[i], several ? result_letter(i) : "", before);
    before += files[i].result.configurations.size();
  }
  MetricTitles titles;
  for (const auto& file : files) titles.add(file.result);
  for (std::size_t i = 0; i < files.size(); ++i)
    for (const auto& c : files[i].result.configurations)
      out += metrics_element(c, chart_label(files, i, c), titles);
  out += "<div class=\"facts\">\n" + list_element("Options", options_of(files));
  for (std::size_t i = 0; i < files.size(); ++i)
    out += list_element(several ? "Result " + result_letter(i) : "Hardware and software", facts_of(files[i]));
  out += "</div>\n";
  return out + html_end(charts.data, kScript);
}

}  // namespace capstan::report
