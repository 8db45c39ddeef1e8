#include "capstan/job/evaluation_schedule.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace capstan::job {

EvaluationSchedule::EvaluationSchedule(StepBudget budget) : budget_(std::move(budget)) {}

std::optional<Version> EvaluationSchedule::next(Version evaluated) const {
  for (const auto& epoch : budget_.epochs) {
    if (epoch.end <= evaluated.value) continue;
    if (epoch.end >= budget_.total) return {};
    return Version{epoch.end};
  }
  return {};
}

double EvaluationSchedule::seconds_at(Version version, Version now, double seconds) const {
  if (now <= budget_.start || version <= budget_.start) return 0;
  const auto updates = [&](Version v) { return static_cast<double>(v.value - budget_.start.value); };
  return seconds * updates(version) / updates(now);
}

EvaluationRecord EvaluationSchedule::record(Version version, double seconds,
                                            const metrics::Evaluation& test) const {
  const double epoch = budget_.epoch_of(version);
  return {version, epoch, std::round(epoch * static_cast<double>(budget_.samples)), seconds, test};
}

std::string EvaluationRecord::text() const {
  return fmt::format("epoch {:g}  step {}  {}", std::round(1000 * epoch) / 1000, version.value,
                     test.text("  "));
}

}  // namespace capstan::job
