#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace capstan::cli {

// The program's exit codes.
enum ExitCode { kSuccess = 0, kFailed = 1, kWrongUsage = 2, kLost = 3, kInterrupted = 130 };

// A run that did not end well, with the exit code that says how. Caught once, in run_command.
class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

using Arguments = std::vector<std::string>;

// `run` gets the arguments behind the command's name.
struct Command {
  const char* name;
  const char* summary;
  int (*run)(const Arguments& arguments);
};

// Runs a command: prints what it throws as one line (with --json as an object, too) and returns the code.
int run_command(const Command& command, const Arguments& arguments);

}  // namespace capstan::cli
