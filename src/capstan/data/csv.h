#pragma once

#include "capstan/data/dataset.h"

namespace capstan::data {

inline constexpr const char* kCsvForm =
    "csv:FILE:target=COLUMN[,COLUMN…][:test=FILE][:classes][:shape=CxHxW][:separator=CHARACTER]";

// A table of numbers and categories with a header.
Dataset open_csv(const DatasetOptions& options);

}  // namespace capstan::data
