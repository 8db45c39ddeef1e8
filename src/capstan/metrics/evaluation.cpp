#include "capstan/metrics/evaluation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace capstan::metrics {

double value_of(const Metric& metric, const MetricSum& total) {
  if (!(total.weight > 0)) return std::numeric_limits<double>::quiet_NaN();
  const auto mean = total.sum / total.weight;
  switch (metric.of) {
    case Metric::Of::kMean:
      return mean;
    case Metric::Of::kExp:
      return std::exp(mean);
    case Metric::Of::kRoot:
      return std::sqrt(mean);
  }
  return mean;
}

bool is_better(const Metric& metric, double value, double than) {
  if (std::isnan(than)) return !std::isnan(value);
  return metric.better == Metric::Better::kHigher ? value > than : value < than;
}

std::string value_text(const Metric& metric, double value) {
  return metric.percent ? fmt::format("{:.2f} %", 100 * value) : fmt::format("{:.4f}", value);
}

std::string title_of(const Metric& metric) {
  auto title = metric.name;
  std::ranges::replace(title, '_', ' ');
  return title;
}

std::string key_of(const Metric& metric) {
  return "test_" + metric.name;
}

Evaluation Evaluation::unknown(std::vector<Metric> metrics) {
  std::vector<double> values(metrics.size(), std::numeric_limits<double>::quiet_NaN());
  return {std::move(metrics), std::move(values), 0};
}

bool Evaluation::is_finite() const {
  return std::ranges::all_of(values, [](double v) { return std::isfinite(v); });
}

std::string Evaluation::text(const char* between, std::size_t most) const {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(most, values.size()); ++i)
    parts.push_back(fmt::format("test {} {}", title_of(metrics[i]), value_text(metrics[i], values[i])));
  return fmt::format("{}", fmt::join(parts, between));
}

void Evaluation::add_to(Json& json) const {
  for (std::size_t i = 0; i < values.size(); ++i) json[key_of(metrics[i])] = values[i];
}

Json to_json(std::span<const Metric> metrics) {
  auto list = Json::array();
  for (const auto& m : metrics)
    list.push_back({{"name", m.name},
                    {"better", m.better == Metric::Better::kHigher ? "higher" : "lower"},
                    {"percent", m.percent}});
  return list;
}

}  // namespace capstan::metrics
