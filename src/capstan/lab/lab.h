#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "capstan/job/environment.h"
#include "capstan/lab/experiment.h"
#include "capstan/lab/registry.h"
#include "capstan/report/lab.h"

namespace capstan::lab {

// What is to be measured.
struct LabJob {
  std::string experiment;          // a name, a file, or "all"; empty: one configuration of `given`
  std::vector<GivenOption> given;  // on the command line; they override those of experiments
  bool quick = false;              // few steps and runs
  std::uint32_t repeat = 0;        // measured runs; 0: the default
  // As LaunchOptions::command and ::program.
  std::vector<std::string> command;
  std::string program;
};

struct LabEvents {
  std::function<void(const std::string&)> message;   // one line for the user
  std::function<void(const std::string&)> progress;  // the state right now
};

// Measures all configurations, one after the other. One that fails has an error in the result, and the others
// still run. Throws UserError before the first one starts if any is wrong, and Failure on a stop request;
// `exit_code` gets the exit code of the first that failed.
report::LabResult run_lab(const LabJob& job, const Registry& registry, job::StopToken& stop,
                          const LabEvents& events, int& exit_code);

}  // namespace capstan::lab
