#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "capstan/data/augment.h"
#include "capstan/data/image_source.h"

namespace capstan::data {

// Both sources, where both are asked for, have the same shape and at least one sample. What they say of a
// sample does not depend on the process that asks.
struct Dataset {
  std::unique_ptr<const ImageSource> train;
  std::unique_ptr<const ImageSource> test;
};

struct DatasetOptions {
  std::string name = "digits";
  std::string data_dir;    // where its files are, itself or in a folder of the dataset's name; empty: data/
  std::uint64_t seed = 1;  // what `synthetic` is made from, and training images are augmented by
  Augment augment = Augment::kAuto;
  std::int64_t image_size = 0;  // side of the images of a folder; 0: the dataset's own, or 224
  bool test_only = false;       // leave `train` null, and do without its files
  bool strict = false;          // refuse a folder's images that cannot be read, instead of replacing them
};

// Throws UserError that says what is wrong, where, and what would be right. Thread-safe.
Dataset load(const DatasetOptions& options);

}  // namespace capstan::data
