#pragma once

#include <filesystem>
#include <optional>

#include "capstan/job/environment.h"
#include "capstan/launch/child.h"

namespace capstan::job {

// The command eval beside a job, if requested. Not thread-safe.
class EvaluatorProcess {
 public:
  EvaluatorProcess(bool requested, const std::filesystem::path& run, Environment environment);

  // Reports the lines that it has logged since the last call.
  void report_log();
  // Waits until it has evaluated the last checkpoint, or for one more stop request. Ends it if the run could
  // not be marked as finished: it would wait for more checkpoints.
  void finish();

 private:
  const std::filesystem::path run_, log_;
  Environment environment_;
  std::streamoff log_offset_ = 0;
  std::optional<launch::Child> child_;
};

}  // namespace capstan::job
