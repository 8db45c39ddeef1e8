#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "capstan/base/json.h"
#include "capstan/metric.h"

namespace capstan::metrics {

// The value of a metric from the sums of all batches; NaN if their weight is 0.
double value_of(const Metric& metric, const MetricSum& total);

bool is_better(const Metric& metric, double value, double than);

// "91.09 %", "0.3013"
std::string value_text(const Metric& metric, double value);

// The name of a metric for people: "energy distance".
std::string title_of(const Metric& metric);

// The key of a metric in result files: "test_accuracy".
std::string key_of(const Metric& metric);

// The results of a model on a whole test set. A value.
struct Evaluation {
  std::vector<Metric> metrics;  // models are compared by the first
  std::vector<double> values;   // of each metric
  std::uint64_t samples = 0;    // 0: not evaluated

  // Every value is NaN.
  static Evaluation unknown(std::vector<Metric> metrics);

  bool is_finite() const;
  // "test accuracy 91.09 %, test loss 0.3013"; `between` separates the metrics, of which at most `most` are
  // in the text.
  std::string text(const char* between = ", ", std::size_t most = 2) const;
  // Adds a member for each metric.
  void add_to(Json& json) const;
};

// A description of metrics for result files; report/comparison.h reads it.
Json to_json(std::span<const Metric> metrics);

}  // namespace capstan::metrics
