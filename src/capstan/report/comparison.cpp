#include "capstan/report/comparison.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capstan/metrics/evaluation.h"
#include "capstan/report/columns.h"

namespace capstan::report {
namespace {

constexpr const char* kNone = "—";

const Run* find(const Comparison& comparison, const std::string& strategy) {
  const auto run = std::ranges::find(comparison.runs, strategy, &Run::strategy);
  return run == comparison.runs.end() ? nullptr : &*run;
}

std::string or_none(const std::optional<double>& value, int decimals, const char* unit) {
  return value ? fmt::format("{:.{}f}{}", *value, decimals, unit) : kNone;
}

std::vector<std::string> cells(const Comparison& c, const Run& run) {
  std::vector<std::string> out = {run.strategy};
  if (!run.has_result) return out;
  out.push_back(fmt::format("{:.1f}", run.seconds));
  out.push_back(fmt::format("{:.0f}", run.samples_per_second));
  out.push_back(or_none(speedup(c, run), 2, ""));
  out.push_back(run.values.empty() ? kNone : metrics::value_text(c.metrics.front(), run.values.front()));
  out.push_back(or_none(seconds_to_target(c, run), 1, " s"));
  out.push_back(run.strategy == "single" ? kNone
                                         : fmt::format("{:.2f} / {}", run.staleness_mean, run.staleness_max));
  return out;
}

}  // namespace

std::optional<double> speedup(const Comparison& comparison, const Run& run) {
  const auto* single = find(comparison, "single");
  if (!single || !single->has_result || !run.has_result || single->samples_per_second <= 0) return {};
  return run.samples_per_second / single->samples_per_second;
}

std::optional<double> seconds_to_target(const Comparison& comparison, const Run& run) {
  if (!comparison.target) return {};
  for (const auto& point : run.points)
    if (!metrics::is_better(comparison.metrics.front(), *comparison.target, point.values.front()))
      return point.seconds;
  return {};
}

Settings common_settings(const Comparison& comparison) {
  Settings out;
  for (const auto& run : comparison.runs)
    for (const auto& [key, value] : run.settings)
      if (key != "strategy" && std::ranges::find(out, key, &Settings::value_type::first) == out.end())
        out.emplace_back(key, "");
  for (auto& [key, text] : out) {
    std::vector<std::pair<std::string, std::vector<std::string>>>
        values;  // with the strategies that have them
    for (const auto& run : comparison.runs) {
      const auto own = std::ranges::find(run.settings, key, &Settings::value_type::first);
      if (own == run.settings.end()) continue;
      const auto same = std::ranges::find_if(values, [&](const auto& s) { return s.first == own->second; });
      if (same == values.end())
        values.push_back({own->second, {run.strategy}});
      else
        same->second.push_back(run.strategy);
    }
    for (const auto& [value, strategies] : values) {
      if (!text.empty()) text += ", ";
      text += values.size() == 1 ? value : fmt::format("{} ({})", value, fmt::join(strategies, ", "));
    }
  }
  return out;
}

std::vector<Point> read_points(const std::filesystem::path& file, const std::vector<Metric>& metrics) {
  std::vector<Point> out;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || json.value("kind", "") != "evaluation") continue;
    const auto number = [&](const std::string& key) {
      const auto found = json.find(key);  // NaN is written as null
      return found != json.end() && found->is_number() ? found->get<double>()
                                                       : std::numeric_limits<double>::quiet_NaN();
    };
    auto& point = out.emplace_back(Point{number("seconds"), number("samples"), {}});
    for (const auto& metric : metrics) point.values.push_back(number(metrics::key_of(metric)));
  }
  return out;
}

Settings read_settings(const std::filesystem::path& config) {
  Settings out;
  std::ifstream in(config);
  for (std::string line; std::getline(in, line);) {
    const auto equals = line.find(" = ");
    if (equals == std::string::npos) continue;
    auto value = line.substr(equals + 3);
    if (value.size() >= 2 && (value.front() == '\'' || value.front() == '"') && value.back() == value.front())
      value = value.substr(1, value.size() - 2);
    if (value.empty()) continue;  // not given, and without a default
    out.emplace_back(line.substr(0, equals), value);
  }
  return out;
}

Metric metric_of(const Comparison& comparison) {
  return comparison.metrics.empty() ? Metric{"result"} : comparison.metrics.front();
}

Table table(const Comparison& comparison) {
  Table out;
  const auto metric = metric_of(comparison);
  const auto to_target = !comparison.target ? std::string("to target")
                         : metric.percent   ? fmt::format("to {:g} %", 100 * *comparison.target)
                                            : fmt::format("to {:g}", *comparison.target);
  out.head = {"strategy", "seconds",      "samples/s", "speed-up", metrics::title_of(metric),
              to_target,  "stale avg/max"};
  for (const auto& run : comparison.runs)
    out.rows.push_back({cells(comparison, run), run.has_result ? "" : run.problem});
  return out;
}

std::string text(const Table& table) {
  constexpr std::size_t kColumns = 80, kNameAndMetric = 27, kMetricAtLeast = 9, kMetricAtMost = 16;
  const auto metric = std::clamp(width(table.head[4]), kMetricAtLeast, kMetricAtMost);
  const auto name = kNameAndMetric - metric;
  const auto line = [&](const std::vector<std::string>& cells) {
    return fmt::format("{:<{}} {:>8} {:>9} {:>8} {:>{}} {:>9} {:>13}\n", cut(cells[0], name), name, cells[1],
                       cells[2], cells[3], cut(cells[4], metric), metric, cells[5], cells[6]);
  };
  auto out = line(table.head);
  for (const auto& row : table.rows) {
    if (row.cells.size() > 1) {
      out += line(row.cells);
    } else {
      out += cut(fmt::format("{:<{}} {}", cut(row.cells[0], name), name, row.problem), kColumns) + "\n";
    }
  }
  return out;
}

}  // namespace capstan::report
