#pragma once

#include <string>

#include "capstan/job/evaluation_schedule.h"
#include "capstan/job/progress.h"

namespace capstan::job {

// Receives a job's reports. Called on the thread that runs the job.
class Events {
 public:
  virtual ~Events() = default;
  // One line for the user.
  virtual void message(const std::string& line) = 0;
  // Called once per progress interval.
  virtual void progress(const Progress& progress) = 0;
  virtual void evaluated(const EvaluationRecord& record) = 0;
};

}  // namespace capstan::job
