#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "capstan/data/image_source.h"

namespace capstan::data {

// Both sources have the same shape and at least one sample. What they say of a sample does not depend on
// the process that asks.
struct Dataset {
  std::unique_ptr<const ImageSource> train;
  std::unique_ptr<const ImageSource> test;
};

struct DatasetOptions {
  std::string name = "digits";
  std::string data_dir;    // where `mnist` looks for its files
  std::uint64_t seed = 1;  // what `synthetic` is made from
};

// The names load() knows.
std::span<const std::string_view> dataset_names();

// `digits` (in the program), `mnist` (IDX files in data_dir), or `synthetic:CxHxW:classes[:N]`. Throws
// UserError that says what is wrong, where, and what would be right. Thread-safe.
Dataset load(const DatasetOptions& options);

}  // namespace capstan::data
