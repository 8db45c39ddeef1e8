#include "capstan/report/bootstrap.h"

#include <algorithm>
#include <vector>

#include "capstan/base/random.h"
#include "capstan/metrics/statistics.h"

namespace capstan::report {
namespace {

constexpr int kResamples = 2000;
constexpr std::uint64_t kSeed = 20240613;

// The mean of as many values, drawn with replacement.
double resampled_mean(std::span<const double> values, Random& random) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[random.below(values.size())];
  return sum / static_cast<double>(values.size());
}

template <class Draw>
Interval interval(Draw draw) {
  Random random(kSeed);
  std::vector<double> all(kResamples);
  for (auto& value : all) value = draw(random);
  std::ranges::sort(all);
  return {metrics::quantile(all, 0.025), metrics::quantile(all, 0.975)};
}

}  // namespace

std::optional<Interval> mean_interval(std::span<const double> values) {
  if (values.size() < 2) return {};
  return interval([&](Random& random) { return resampled_mean(values, random); });
}

std::optional<Interval> ratio_interval(std::span<const double> values, std::span<const double> base) {
  if (values.size() < 2 || base.size() < 2) return {};
  return interval([&](Random& random) {
    const auto over = resampled_mean(values, random);
    return over / resampled_mean(base, random);
  });
}

}  // namespace capstan::report
