#pragma once

#include <optional>
#include <string>

#include "capstan/base/ids.h"
#include "capstan/job/step_budget.h"
#include "capstan/metrics/evaluation.h"

namespace capstan::job {

// The evaluation of one version, and when the run reached it. A value.
struct EvaluationRecord {
  Version version;
  double epoch = 0;    // passes over the training set
  double samples = 0;  // trained until then
  double seconds = 0;  // of training until then
  metrics::Evaluation test;

  // "epoch 1  step 23  test accuracy 91.09 %  test loss 0.3013"
  std::string text() const;
};

// The versions of a run to evaluate: the end of each epoch, and the end of the run. A value.
class EvaluationSchedule {
 public:
  explicit EvaluationSchedule(StepBudget budget);

  // The next version to evaluate after `evaluated`; none if only the end of the run is left, whose version is
  // not known in advance.
  std::optional<Version> next(Version evaluated) const;

  // The training time at `version`, if the servers have reached `now` after `seconds`: updates are assumed to
  // be evenly spaced.
  double seconds_at(Version version, Version now, double seconds) const;

  EvaluationRecord record(Version version, double seconds, const metrics::Evaluation& test) const;

 private:
  const StepBudget budget_;
};

}  // namespace capstan::job
