#pragma once

#include <cstddef>
#include <span>

namespace capstan::kernels {

// One summand: an array and what it is multiplied with.
struct Term {
  const float* values = nullptr;
  float factor = 1;
};

// out[i] = Σ factor·values[offset + i], summed in the order given (at least one term). An element's result
// depends on the terms alone: not on i, on offset or on how the arrays are cut. Thread-safe; `out` overlaps
// no term.
void weighted_sum(std::span<const Term> terms, std::size_t offset, std::span<float> out);
// The same, added to what is there.
void add_weighted(std::span<const Term> terms, std::size_t offset, std::span<float> out);

}  // namespace capstan::kernels
