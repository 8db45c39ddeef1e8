#pragma once

#include "capstan/data/dataset.h"

namespace capstan::data {

inline constexpr const char* kArraysForm =
    "arrays:FILE[:test=FILE][:input=NAME][:target=NAME][:numbers][:shape=CxHxW]";

// Arrays of a .safetensors, .npz or .npy file, whose first dimension is the samples.
Dataset open_arrays(const DatasetOptions& options);

}  // namespace capstan::data
