#pragma once

#include <stdexcept>
#include <string>

namespace capstan {

// The program's exit codes.
enum ExitCode { kSuccess = 0, kFailed = 1, kWrongUsage = 2, kLost = 3, kInterrupted = 130 };

// A failed or interrupted run, with its exit code. Caught once, where commands are run.
class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

}  // namespace capstan
