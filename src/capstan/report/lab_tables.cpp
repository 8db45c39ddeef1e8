#include "capstan/report/lab_tables.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "capstan/base/text.h"
#include "capstan/report/columns.h"
#include "capstan/simulate/units.h"

namespace capstan::report {
namespace {

constexpr const char* kNone = "—";

// A row for each configuration; `cells` gives those after the name.
template <class Cells>
Table configuration_table(std::vector<std::string> head, const LabResult& result, Cells cells) {
  Table out{std::move(head), {}};
  for (const auto& c : result.configurations) {
    auto& row = out.rows.emplace_back(Table::Row{{short_name(result, c)}, ""});
    if (!is_measured(c)) {
      row.problem = c.error ? "failed: " + *c.error : "no runs";
    } else {
      const auto more = cells(c);
      row.cells.insert(row.cells.end(), more.begin(), more.end());
    }
  }
  return out;
}

// Over the runs that have communication.
std::string hidden_text(const LabConfiguration& c) {
  double sum = 0, count = 0;
  for (const auto& run : c.runs) {
    if (!run.hidden_communication) continue;
    sum += *run.hidden_communication;
    ++count;
  }
  return count > 0 ? fmt::format("{:.0f} %", 100 * sum / count) : kNone;
}

std::string pushed_text(const LabConfiguration& c) {
  double sum = 0;
  for (const auto& run : c.runs) sum += static_cast<double>(run.bytes.pushed);
  return simulate::bytes_text(sum / static_cast<double>(c.runs.size()));
}

std::string loss_text(const LabConfiguration& c) {
  double sum = 0;
  for (const auto& run : c.runs) sum += run.loss.value_or(NAN);
  return std::isfinite(sum) ? fmt::format("{:.4g}", sum / static_cast<double>(c.runs.size())) : "NaN";
}

std::vector<std::string> throughput_cells(const LabConfiguration& c) {
  const auto interval = mean_interval(throughputs(c));
  return {fmt::format("{}", c.runs.size()),
          compact(mean_throughput(c)),
          interval ? fmt::format("{}–{}", compact(interval->low), compact(interval->high)) : kNone,
          hidden_text(c),
          pushed_text(c),
          loss_text(c)};
}

std::vector<std::string> step_cells(const LabConfiguration& c) {
  const auto s = mean_step(c);
  std::vector<std::string> out;
  for (const double part : {s.data, s.forward, s.backward, s.communication, s.optimizer})
    out.push_back(s.sum() > 0 ? fmt::format("{:.1f}", 100 * part / s.sum()) : kNone);
  out.push_back(compact(s.sum()));
  return out;
}

std::pair<std::string, std::string> type_and_name(const std::string& metric) {
  const auto comma = metric.find(',');
  if (comma == std::string::npos) return {"", metric};
  return {metric.substr(0, comma), metric.substr(comma + 1)};
}

}  // namespace

Table throughput_table(const LabResult& result) {
  return configuration_table(
      {"configuration", "runs", "samples/s", "95 % interval", "hidden", "pushed", "loss"}, result,
      throughput_cells);
}

Table step_table(const LabResult& result) {
  auto out = configuration_table(
      {"a step's time, %", "data", "forward", "backward", "communic.", "optimizer", "step ms"}, result,
      step_cells);
  std::erase_if(out.rows, [](const auto& row) { return !row.problem.empty(); });
  return out;
}

std::vector<std::string> ranks_of(const LabRun& run) {
  std::vector<std::string> out;
  for (const auto& metric : run.metrics)
    if (std::ranges::find(out, metric.rank) == out.end()) out.push_back(metric.rank);
  return out;
}

void MetricTitles::add(const LabResult& result) {
  for (const auto& configuration : result.configurations) {
    for (const auto& run : configuration.runs) {
      for (const auto& metric : run.metrics) {
        const auto [type, name] = type_and_name(metric.name);
        types_[name].insert(type);
      }
    }
  }
}

std::string MetricTitles::title(const std::string& metric) const {
  const auto name = type_and_name(metric).second;
  const auto types = types_.find(name);
  return types != types_.end() && types->second.size() > 1 ? metric : name;
}

Table metrics_table(const LabRun& run, const std::string& rank, const MetricTitles& titles) {
  std::vector<const LabMetric*> all;
  for (const auto& metric : run.metrics)
    if (metric.rank == rank) all.push_back(&metric);
  std::ranges::stable_sort(all, {}, [](const LabMetric* m) { return m->name; });
  Table out{{"name", "unit", "count", "min", "mean", "p50", "p95", "p99", "max", "variance", "stdev"}, {}};
  for (const auto* m : all) {
    const auto& s = m->statistics;
    auto& row = out.rows.emplace_back(
        Table::Row{{titles.title(m->name), m->unit, compact(static_cast<double>(s.count))}, ""});
    if (s.count < 100'000) row.cells.back() = fmt::format("{}", s.count);
    for (const double v : {s.min, s.mean, s.p50, s.p95, s.p99, s.max}) row.cells.push_back(compact(v));
    for (const auto& v : {s.variance, s.stdev}) row.cells.push_back(v ? compact(*v) : kNone);
  }
  return out;
}

Table difference_table(const LabComparison& comparison, const std::string& path) {
  Table out{{"configuration", "first", "later", "ratio", "95 % interval", "verdict"}, {}};
  for (const auto& d : comparison.differences) {
    if (d.path != path) continue;
    out.rows.push_back({{d.title, compact(d.first), compact(d.later), fmt::format("{:.3f}", d.ratio),
                         d.interval ? fmt::format("{:.3f}–{:.3f}", d.interval->low, d.interval->high) : kNone,
                         text_of(d.verdict)},
                        ""});
  }
  return out;
}

std::vector<std::string> compared_paths(const LabComparison& comparison) {
  std::vector<std::string> out;
  for (const auto& d : comparison.differences)
    if (std::ranges::find(out, d.path) == out.end()) out.push_back(d.path);
  return out;
}

std::string versions_text(const LabResult& result) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : result.versions) parts.push_back(name + " " + text_of(value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string machine_text(const LabMachine& machine) {
  return fmt::format("{}, {}, {}", machine.cpu, counted(machine.cores, "core"),
                     simulate::bytes_text(static_cast<double>(machine.memory_bytes)));
}

}  // namespace capstan::report
