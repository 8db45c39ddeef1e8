#pragma once

#include <filesystem>
#include <optional>

#include "capstan/job/environment.h"
#include "capstan/launch/child.h"

namespace capstan::job {

// `capstan eval` beside a job, where it is asked for. Not thread-safe.
class EvaluatorProcess {
 public:
  EvaluatorProcess(bool wanted, const std::filesystem::path& run, Environment environment);

  // Passes on what it has said since the last call.
  void look();
  // Waits until it has evaluated the last checkpoint, or the user asks to end once more.
  void finish();

 private:
  const std::filesystem::path log_;
  Environment environment_;
  std::streamoff said_ = 0;
  std::optional<launch::Child> child_;
};

}  // namespace capstan::job
