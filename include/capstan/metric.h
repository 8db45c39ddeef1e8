#pragma once

#include "capstan/cxx20.h"

#include <string>

namespace capstan {

// A figure by which a model is evaluated, such as accuracy. A value.
struct Metric {
  enum class Better { kHigher, kLower };
  // What is computed from the mean over the test set.
  enum class Of {
    kMean,  // the mean itself
    kExp,   // its exponential: perplexity of a cross-entropy
    kRoot,  // its square root: root-mean-square error of squared errors
  };

  std::string name;  // "accuracy", "energy_distance"; results have it as "test_accuracy"
  Better better = Better::kLower;
  Of of = Of::kMean;
  bool percent = false;  // from 0 to 1, displayed as a percentage

  friend bool operator==(const Metric&, const Metric&) = default;
};

// One batch's contribution to a metric, whose mean is Σ sum / Σ weight.
struct MetricSum {
  double sum = 0;
  double weight = 0;
};

}  // namespace capstan
