#include "capstan/metrics/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "capstan/base/check.h"

namespace capstan::metrics {

double quantile(std::span<const double> ascending, double part) {
  CAPSTAN_CHECK(!ascending.empty() && part >= 0 && part <= 1, "a quantile of at least one value");
  const double position = part * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto above = std::min(below + 1, ascending.size() - 1);
  return std::lerp(ascending[below], ascending[above], position - static_cast<double>(below));
}

std::optional<Statistics> statistics(std::span<const double> values) {
  if (values.empty()) return {};
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  Statistics out;
  out.count = sorted.size();
  out.min = sorted.front();
  out.max = sorted.back();
  const auto count = static_cast<double>(sorted.size());
  out.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / count;
  double squares = 0;
  for (const double v : sorted) squares += (v - out.mean) * (v - out.mean);
  if (sorted.size() > 1) {
    out.variance = squares / (count - 1);
    out.stdev = std::sqrt(*out.variance);
  }
  out.p50 = quantile(sorted, 0.5);
  out.p95 = quantile(sorted, 0.95);
  out.p99 = quantile(sorted, 0.99);
  return out;
}

}  // namespace capstan::metrics
