#pragma once

#include <optional>
#include <string>

#include "capstan/base/ids.h"
#include "capstan/job/step_budget.h"
#include "capstan/training/evaluation.h"

namespace capstan::job {

// How good the weights of a version are, and when the run had reached it. A value.
struct EvaluationRecord {
  Version version;
  double epoch = 0;    // passes over the training set
  double samples = 0;  // trained until then
  double seconds = 0;  // of training until then
  training::Evaluation test;

  // "epoch 1  step 23  test accuracy 91.09 %  test loss 0.3013"
  std::string text() const;
};

// Which versions of a run are evaluated: the end of each epoch, and the end of the run. A value.
class EvaluationSchedule {
 public:
  explicit EvaluationSchedule(StepBudget budget);

  // The next version to evaluate after `evaluated`; none where only the end of the run is left, which is
  // evaluated with whatever the run has reached.
  std::optional<Version> next(Version evaluated) const;

  // Servers have gone on to `now` since they made `version`: the updates in between count as evenly spread.
  double seconds_at(Version version, Version now, double seconds) const;

  EvaluationRecord record(Version version, double seconds, const training::Evaluation& test) const;

 private:
  const StepBudget budget_;
};

}  // namespace capstan::job
