#pragma once

#include "capstan/metrics/evaluation.h"

namespace capstan::testing {

// The metrics of classification.
inline std::vector<Metric> classification_metrics() {
  return {{"accuracy", Metric::Better::kHigher, Metric::Of::kMean, true},
          {"loss"},
          {"top5", Metric::Better::kHigher, Metric::Of::kMean, true}};
}

inline metrics::Evaluation classified(double loss, double accuracy, double top5, std::uint64_t samples) {
  return {classification_metrics(), {accuracy, loss, top5}, samples};
}

}  // namespace capstan::testing
