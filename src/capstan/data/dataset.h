#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capstan/data/augment.h"
#include "capstan/data/encoding.h"
#include "capstan/data/sample_source.h"

namespace capstan::data {

// Both sources have the same shape and at least one sample. A sample is the same in every process.
struct Dataset {
  std::unique_ptr<const SampleSource> train;
  std::unique_ptr<const SampleSource> test;
  Encoding encoding = {};
};

struct DatasetOptions {
  std::string name = "digits";
  // Contains its files or a folder with the dataset's name; empty: data/, and the current folder for files
  // that `name` gives.
  std::string data_dir;
  std::uint64_t seed = 1;  // of `synthetic` images and of augmentation
  Augment augment = Augment::kAuto;
  std::int64_t image_size = 0;  // side of a folder's images; 0: the dataset's own, or 224
  bool test_only = false;       // `train` stays null; its files need not exist if `encoding` is given
  Normalize normalize = Normalize::kAuto;
  std::optional<Encoding> encoding = {};  // of an earlier load, so that this one encodes and normalises alike
  bool strict = false;                    // fail on a folder's unreadable images instead of replacing them
};

// The names of all kinds: what a dataset's name has before a colon.
std::vector<std::string_view> dataset_names();

// Throws UserError that says what is wrong, where, and what is allowed. Thread-safe.
Dataset load(const DatasetOptions& options);

}  // namespace capstan::data
