#pragma once

#include <string>

#include "capstan/job/evaluation_schedule.h"
#include "capstan/job/progress.h"

namespace capstan::job {

// How a job reports to the program that runs it. Called on the thread that runs the job.
class Events {
 public:
  virtual ~Events() = default;
  // One line for people.
  virtual void message(const std::string& line) = 0;
  // Where the job stands, as often as its progress interval says.
  virtual void progress(const Progress& progress) = 0;
  virtual void evaluated(const EvaluationRecord& record) = 0;
};

}  // namespace capstan::job
