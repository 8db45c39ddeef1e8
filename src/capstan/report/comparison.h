#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace capstan::report {

// How good the weights were at some point of a run.
struct Point {
  double seconds = 0;
  double samples = 0;
  double accuracy = 0;  // 0 … 1
  double loss = 0;
};

using Settings = std::vector<std::pair<std::string, std::string>>;

// One strategy's run. Numbers say nothing where it has no result.
struct Run {
  std::string strategy;
  std::string problem;      // one line; empty where it ended well
  bool has_result = false;  // an interrupted run has one, too
  double seconds = 0;
  double samples_per_second = 0;
  double test_accuracy = 0, test_loss = 0;
  double staleness_mean = 0;
  std::uint64_t staleness_max = 0;
  std::uint64_t steps = 0;
  double epochs = 0;
  std::string run_dir;
  std::vector<Point> points;
  Settings settings;  // its whole configuration
};

// One job under several strategies.
struct Comparison {
  std::vector<Run> runs;
  std::optional<double> target_accuracy;  // 0 … 1
  Settings versions;                      // what it ran on
  std::string when;
};

// Samples per second over those of `single`; none where either has no result.
std::optional<double> speedup(const Comparison& comparison, const Run& run);
// When its test accuracy was first at least the target; none where it never was, or none is asked for.
std::optional<double> seconds_to_target(const Comparison& comparison, const Run& run);
// What the runs' configurations say; where they differ, who says what. The strategy itself is left out.
Settings common_settings(const Comparison& comparison);

// The evaluations of a run, from its metrics.jsonl; lines that say something else are passed over.
std::vector<Point> read_points(const std::filesystem::path& metrics);
// `key = value` lines of a run's config.toml.
Settings read_settings(const std::filesystem::path& config);

// What people read, cell by cell.
struct Table {
  std::vector<std::string> head;
  struct Row {
    std::vector<std::string> cells;
    std::string problem;  // instead of the cells behind the first
  };
  std::vector<Row> rows;
};
Table table(const Comparison& comparison);
// At most 80 columns wide; a problem that does not fit is cut.
std::string text(const Table& table);

}  // namespace capstan::report
