#pragma once

#include <vector>

#include "capstan/data/array_file.h"

namespace capstan::data {

// Whether floats hold all finite numbers of a type exactly.
bool fits_floats(DType type);

// The numbers of an array. Both throw UserError with the index of a number that is not a finite 32-bit float.
std::vector<float> floats_of(const Array& array);
// Of a type that does not fit floats. Integers beyond 2^53 are rounded.
std::vector<double> doubles_of(const Array& array);

}  // namespace capstan::data
