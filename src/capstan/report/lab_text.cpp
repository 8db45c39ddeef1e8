#include "capstan/report/lab_text.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "capstan/base/text.h"
#include "capstan/report/columns.h"
#include "capstan/report/lab_tables.h"

namespace capstan::report {
namespace {

// The first cell, aligned to the left. One that is too long has a line of its own: the ends of names tell
// configurations apart.
std::string first_cell(const std::string& name, std::size_t columns) {
  if (width(name) > columns) return cut(name, kColumns) + "\n" + std::string(columns, ' ');
  return fmt::format("{:<{}}", name, columns);
}

// As many columns as there are widths.
std::string line(const std::vector<std::string>& cells, std::span<const std::size_t> widths) {
  auto out = first_cell(cells[0], widths[0]);
  for (std::size_t i = 1; i < widths.size(); ++i)
    out += fmt::format(" {:>{}}", cut(cells[i], widths[i]), widths[i]);
  return out + "\n";
}

std::string text(const Table& table, std::span<const std::size_t> widths) {
  auto out = line(table.head, widths);
  for (const auto& row : table.rows) {
    if (row.problem.empty()) {
      out += line(row.cells, widths);
    } else {
      const auto indent = widths[0] + 1;
      out += first_cell(row.cells[0], widths[0]) + " " + wrapped(row.problem, indent, indent) + "\n";
    }
  }
  return out;
}

// The last cell is aligned to the left. A long one leaves no room for the interval, which is empty then.
std::string difference_line(const std::vector<std::string>& cells) {
  constexpr std::size_t kInterval = 13, kVerdict = 12;
  auto out = first_cell(cells[0], 27) + fmt::format(" {:>7} {:>7} {:>6} ", cells[1], cells[2], cells[3]);
  if (cells[5].size() <= kVerdict) out += fmt::format("{:>{}} ", cells[4], kInterval);
  return out + cells[5] + "\n";
}

std::string paragraph(const std::string& words) {
  return wrapped(words, 0, 2) + "\n";
}

}  // namespace

std::string lab_summary(const LabResult& result) {
  constexpr std::size_t kThroughput[] = {28, 4, 9, 13, 6, 7, 7};
  constexpr std::size_t kStep[] = {28, 6, 7, 8, 9, 9, 7};
  auto out = paragraph(fmt::format("{}, {}", result.experiment, result.when)) +
             paragraph(machine_text(result.machine)) + paragraph(versions_text(result)) + "\n" +
             text(throughput_table(result), kThroughput);
  if (const auto steps = step_table(result); !steps.rows.empty()) out += "\n" + text(steps, kStep);
  return out;
}

std::string lab_metrics(const LabResult& result) {
  constexpr std::size_t kMetrics[] = {24, 6, 6, 6, 6, 6, 6, 6, 6};
  MetricTitles titles;
  titles.add(result);
  std::string out;
  for (const auto& c : result.configurations) {
    if (c.runs.empty()) continue;
    const auto index = median_run(c);
    const auto& run = c.runs[index];
    if (!out.empty()) out += "\n";
    out += paragraph(c.runs.size() == 1 ? c.name
                                        : fmt::format("{}: run {} of {}, the one with the median throughput",
                                                      c.name, index + 1, c.runs.size()));
    for (const auto& rank : ranks_of(run))
      out += fmt::format("\nmetrics for {}\n{}", cut(rank, 60),
                         text(metrics_table(run, rank, titles), kMetrics));
  }
  return out;
}

std::string lab_differences(const LabComparison& comparison, const std::string& first_path) {
  std::string out;
  for (const auto& path : compared_paths(comparison)) {
    if (!out.empty()) out += "\n";
    out += paragraph(fmt::format("{} against {}, samples/s", path, first_path));
    const auto table = difference_table(comparison, path);
    out += difference_line(table.head);
    for (const auto& row : table.rows) out += difference_line(row.cells);
  }
  for (const auto& note : comparison.notes) out += paragraph(note);
  return out;
}

}  // namespace capstan::report
