#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capstan/data/statistics.h"

namespace capstan::data {

inline constexpr std::int64_t kMostClasses = 1 << 20;

// A column of a table: a number, or one of several categories, which become as many inputs of 0 or 1.
struct InputColumn {
  std::string name;
  std::vector<std::string> categories;  // sorted; empty for a number

  friend bool operator==(const InputColumn&, const InputColumn&) = default;
};

// How a dataset's files become inputs and targets, as the training part determines it. With it the test part
// is encoded alike without the training part. A value.
struct Encoding {
  std::vector<InputColumn> columns;      // of a table, in order
  std::vector<std::string> targets;      // of a table: names of the target's columns
  std::int64_t classes = 0;              // 0: the target is numbers
  std::vector<std::string> class_names;  // of tables and image folders
  Statistics statistics;                 // by which inputs are normalised

  // One JSON object.
  std::string to_json() const;
  // Throws UserError that begins with `name` for a text that to_json() cannot have written.
  static Encoding parse(const std::string& json, const std::string& name);

  friend bool operator==(const Encoding&, const Encoding&) = default;
};

}  // namespace capstan::data
