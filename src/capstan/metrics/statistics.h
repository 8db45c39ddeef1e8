#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace capstan::metrics {

// A summary of a series of values. Variance and standard deviation are those of a sample (divided by
// count − 1); a single value has none.
struct Statistics {
  std::uint64_t count = 0;
  double min = 0, max = 0, mean = 0;
  std::optional<double> variance, stdev;
  double p50 = 0, p95 = 0, p99 = 0;
};

// No value for an empty series. Values must not be NaN.
std::optional<Statistics> statistics(std::span<const double> values);

// The quantile at `part` (0 … 1) of ascending values, of which there is at least one; interpolates linearly
// between neighbours, as NumPy does by default.
double quantile(std::span<const double> ascending, double part);

}  // namespace capstan::metrics
