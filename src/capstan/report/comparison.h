#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace capstan::report {

// An evaluation during a run.
struct Point {
  double seconds = 0;
  double samples = 0;
  double accuracy = 0;  // 0 … 1
  double loss = 0;
};

using Settings = std::vector<std::pair<std::string, std::string>>;

// One strategy's run. Numbers are meaningless without a result.
struct Run {
  std::string strategy;
  std::string problem;      // one line; empty on success
  bool has_result = false;  // an interrupted run has one too
  double seconds = 0;
  double samples_per_second = 0;
  double test_accuracy = 0, test_loss = 0;
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
  std::optional<double> target_accuracy;  // 0 … 1
  Settings versions;                      // of hardware and software
  std::string when;
};

// Samples per second relative to `single`; no value if either has no result.
std::optional<double> speedup(const Comparison& comparison, const Run& run);
// When the test accuracy first reached the target; no value if it never did or there is no target.
std::optional<double> seconds_to_target(const Comparison& comparison, const Run& run);
// The runs' configurations merged; values that differ are listed with their strategies. Without the strategy
// itself.
Settings common_settings(const Comparison& comparison);

// The evaluations of a run, from its metrics.jsonl; other lines are skipped.
std::vector<Point> read_points(const std::filesystem::path& metrics);
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
