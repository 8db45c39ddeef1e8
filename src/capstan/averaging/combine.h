#pragma once

#include <cstdint>
#include <span>

#include "capstan/averaging/buckets.h"
#include "capstan/server/pool.h"

// Sums of gradients, divided among the threads of a pool. The inputs are summed in their order. An element's
// result does not depend on the number of threads. Call each function from one thread; `out` overlaps no
// input.
namespace capstan::averaging {

// out = factor · Σ inputs, which are dense and as long as `out`.
void combine(std::span<const Gradient> inputs, float factor, std::span<float> out, server::Pool& pool);
// out += input.
void add(const Gradient& input, std::span<float> out, server::Pool& pool);

// The union of the inputs' rows, in increasing order, at the front of `rows`; returns their number.
std::size_t unite_rows(std::span<const Gradient> inputs, std::span<std::uint32_t> rows);
// For each of these rows, which unite_rows() has returned: factor · Σ of the inputs that have it.
void combine_rows(std::span<const Gradient> inputs, float factor, std::size_t columns,
                  std::span<const std::uint32_t> rows, std::span<float> values, server::Pool& pool);

}  // namespace capstan::averaging
