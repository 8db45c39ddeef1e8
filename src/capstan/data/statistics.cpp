#include "capstan/data/statistics.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "capstan/base/check.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

template <class T>
Statistics measure_numbers(std::span<const T> values, std::size_t period) {
  CAPSTAN_CHECK(!values.empty() && values.size() % period == 0, "there are whole samples");
  const auto n = static_cast<double>(values.size() / period);
  // Differences from the first value: the mean of equal values is exact, so that a constant is recognised,
  // and a large common part, such as that of timestamps, costs no precision.
  const std::vector<double> first(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(period));
  Statistics out{std::vector<double>(period), std::vector<double>(period)};
  for (std::size_t i = 0; i < values.size(); i += period)
    for (std::size_t c = 0; c < period; ++c) out.mean[c] += static_cast<double>(values[i + c]) - first[c];
  for (std::size_t c = 0; c < period; ++c) out.mean[c] = first[c] + out.mean[c] / n;
  for (std::size_t i = 0; i < values.size(); i += period) {
    for (std::size_t c = 0; c < period; ++c) {
      const double off = static_cast<double>(values[i + c]) - out.mean[c];
      out.deviation[c] += off * off;
    }
  }
  for (auto& deviation : out.deviation) deviation = deviation > 0 ? std::sqrt(deviation / n) : 1;
  return out;
}

// `out` may be the values themselves.
template <class T>
void normalise_to(const Statistics& statistics, std::span<const T> values, float* out) {
  if (statistics.empty()) {
    for (const auto value : values) *out++ = static_cast<float>(value);
    return;
  }
  const auto period = statistics.mean.size();
  for (std::size_t i = 0; i < values.size(); i += period) {
    for (std::size_t c = 0; c < period; ++c) {
      const auto value = static_cast<double>(values[i + c]);
      *out++ = static_cast<float>((value - statistics.mean[c]) / statistics.deviation[c]);
    }
  }
}

}  // namespace

Normalize parse_normalize(std::string_view name) {
  if (name == "auto") return Normalize::kAuto;
  if (name == "none") return Normalize::kNone;
  if (name == "train") return Normalize::kTrain;
  throw UserError(fmt::format("--normalize {}: must be auto, none or train", name));
}

Statistics measure(std::span<const std::uint8_t> levels, std::size_t period) {
  CAPSTAN_CHECK(!levels.empty() && levels.size() % period == 0, "there are whole samples");
  std::vector<std::array<std::uint64_t, 256>> counts(period);
  for (std::size_t i = 0; i < levels.size(); i += period)
    for (std::size_t c = 0; c < period; ++c) ++counts[c][levels[i + c]];
  const auto n = static_cast<double>(levels.size() / period);
  Statistics out;
  for (const auto& count : counts) {
    double sum = 0, squares = 0;
    for (std::size_t v = 0; v < 256; ++v)
      sum += static_cast<double>(count[v]) * (static_cast<double>(v) / 255);
    const double mean = sum / n;
    std::size_t different = 0;
    for (std::size_t v = 0; v < 256; ++v) {
      const double off = static_cast<double>(v) / 255 - mean;
      squares += static_cast<double>(count[v]) * off * off;
      different += count[v] > 0;
    }
    out.mean.push_back(mean);
    out.deviation.push_back(different > 1 ? std::sqrt(squares / n) : 1);
  }
  return out;
}

Statistics measure(std::span<const float> values, std::size_t period) {
  return measure_numbers(values, period);
}

Statistics measure(std::span<const double> values, std::size_t period) {
  return measure_numbers(values, period);
}

void normalise(const Statistics& statistics, std::span<float> values) {
  normalise_to<float>(statistics, values, values.data());
}

std::vector<float> normalised(const Statistics& statistics, std::span<const double> values) {
  std::vector<float> out(values.size());
  normalise_to(statistics, values, out.data());
  return out;
}

}  // namespace capstan::data
