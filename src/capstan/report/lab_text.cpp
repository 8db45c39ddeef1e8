#include "capstan/report/lab_text.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "capstan/base/text.h"
#include "capstan/report/columns.h"
#include "capstan/report/lab_tables.h"

namespace capstan::report {
namespace {

std::string line(const std::vector<std::string>& cells, std::span<const std::size_t> widths) {
  auto out = fmt::format("{:<{}}", cut(cells[0], widths[0]), widths[0]);
  for (std::size_t i = 1; i < widths.size(); ++i) out += fmt::format(" {:>{}}", cells[i], widths[i]);
  return out + "\n";
}

// As many columns as there are widths. The first one is aligned to the left.
std::string text(const Table& table, std::span<const std::size_t> widths) {
  auto out = line(table.head, widths);
  for (const auto& row : table.rows)
    out +=
        row.problem.empty()
            ? line(row.cells, widths)
            : cut(fmt::format("{:<{}} {}", cut(row.cells[0], widths[0]), widths[0], row.problem), kColumns) +
                  "\n";
  return out;
}

std::string paragraph(const std::string& words) {
  return wrapped(words, 0, 2) + "\n";
}

}  // namespace

std::string lab_summary(const LabResult& result) {
  constexpr std::size_t kThroughput[] = {36, 4, 9, 13, 6, 7};
  constexpr std::size_t kStep[] = {28, 6, 7, 8, 9, 9, 7};
  return paragraph(fmt::format("{}, {}", result.experiment, result.when)) +
         paragraph(machine_text(result.machine)) + paragraph(versions_text(result)) + "\n" +
         text(throughput_table(result), kThroughput) + "\n" + text(step_table(result), kStep);
}

std::string lab_metrics(const LabResult& result) {
  constexpr std::size_t kMetrics[] = {25, 5, 6, 6, 6, 6, 6, 6, 6};
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
      out += fmt::format("\nmetrics for {}\n{}", cut(rank, 60), text(metrics_table(run, rank), kMetrics));
  }
  return out;
}

std::string lab_differences(const LabComparison& comparison, const std::string& first_path) {
  constexpr std::size_t kWidths[] = {27, 7, 7, 6};
  std::string out, path;
  const auto table = difference_table(comparison);
  for (std::size_t i = 0; i < comparison.differences.size(); ++i) {
    const auto& d = comparison.differences[i];
    if (d.path != path) {
      path = d.path;
      out += (out.empty() ? "" : "\n") + paragraph(fmt::format("{} against {}, samples/s", path, first_path));
      auto head = line(table.head, kWidths);
      head.pop_back();
      out += fmt::format("{} {:>13} {}\n", head, table.head[4], table.head[5]);
    }
    const auto& cells = table.rows[i].cells;
    auto row = line(cells, kWidths);
    row.pop_back();
    out += d.interval ? fmt::format("{} {:>13} {}\n", row, cells[4], cells[5])
                      : fmt::format("{} {}\n", row, cells[5]);
  }
  for (const auto& note : comparison.notes) out += paragraph(note);
  return out;
}

}  // namespace capstan::report
