#pragma once

#include <cstddef>
#include <span>

namespace capstan::kernels {

// One summand: an array and its factor.
struct Term {
  const float* values = nullptr;
  float factor = 1;
};

// out[i] = Σ factor·values[offset + i], summed in the order of the terms (at least one). An element's result
// depends on the terms only: not on i, on offset or on the split of the arrays. Thread-safe; `out` overlaps
// no term.
void weighted_sum(std::span<const Term> terms, std::size_t offset, std::span<float> out);
// The same, added to `out`.
void add_weighted(std::span<const Term> terms, std::size_t offset, std::span<float> out);

}  // namespace capstan::kernels
