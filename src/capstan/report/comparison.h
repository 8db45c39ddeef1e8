#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capstan/metric.h"

namespace capstan::report {

// An evaluation during a run.
struct Point {
  double seconds = 0;
  double samples = 0;
  std::vector<double> values;  // of each metric
};

using Settings = std::vector<std::pair<std::string, std::string>>;

// One strategy's run. Numbers are meaningless without a result.
struct Run {
  std::string strategy;
  std::string problem;      // one line; empty on success
  bool has_result = false;  // an interrupted run has one too
  double seconds = 0;
  double samples_per_second = 0;
  std::vector<double> values;  // of each metric, at the end
  double staleness_mean = 0;
  std::uint64_t staleness_max = 0;
  std::uint64_t steps = 0;
  double epochs = 0;
  std::string run_dir;
  std::vector<Point> points;
  Settings settings;  // its complete configuration
};

// One job under several strategies.
struct Comparison {
  std::vector<Run> runs;
  std::vector<Metric> metrics;   // runs are compared by the first
  std::optional<double> target;  // of the first metric
  Settings versions;             // of hardware and software
  std::string when;
};

// The metric by which runs are compared; if no run has a result, one without a meaning.
Metric metric_of(const Comparison& comparison);
// Samples per second relative to `single`; no value if either has no result.
std::optional<double> speedup(const Comparison& comparison, const Run& run);
// When the first metric reached the target; no value if it never did or there is no target.
std::optional<double> seconds_to_target(const Comparison& comparison, const Run& run);
// The runs' configurations merged; values that differ are listed with their strategies. Without the strategy
// itself.
Settings common_settings(const Comparison& comparison);

// The evaluations of a run, from its metrics.jsonl; other lines are skipped.
std::vector<Point> read_points(const std::filesystem::path& file, const std::vector<Metric>& metrics);
// `key = value` lines of a run's config.toml.
Settings read_settings(const std::filesystem::path& config);

// A table of text cells.
struct Table {
  std::vector<std::string> head;
  struct Row {
    std::vector<std::string> cells;
    std::string problem;  // replaces all cells after the first
  };
  std::vector<Row> rows;
};
Table table(const Comparison& comparison);
// At most 80 columns wide; a longer problem is truncated.
std::string text(const Table& table);

}  // namespace capstan::report
