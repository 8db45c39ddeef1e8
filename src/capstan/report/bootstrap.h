#pragma once

#include <optional>
#include <span>

namespace capstan::report {

struct Interval {
  double low = 0, high = 0;
};

// 95 % percentile intervals from 2,000 resamples with a fixed seed: the same values give the same interval.
// No value with fewer than two values, because one value says nothing about the noise. Values are positive.

std::optional<Interval> mean_interval(std::span<const double> values);
// Of mean(values) ÷ mean(base).
std::optional<Interval> ratio_interval(std::span<const double> values, std::span<const double> base);

}  // namespace capstan::report
