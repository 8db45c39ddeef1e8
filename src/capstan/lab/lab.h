#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capstan/base/failure.h"
#include "capstan/job/environment.h"
#include "capstan/lab/options.h"
#include "capstan/lab/registry.h"
#include "capstan/lab/resolve.h"
#include "capstan/report/lab.h"

// The whole of `capstan bench ps`, without its flags and its output.
namespace capstan::lab {

inline constexpr const char* kAllExperiments = "all";

// What the user asks for.
struct LabRequest {
  std::vector<GivenOption> given;       // on the command line; overrides those of the experiment
  std::string experiment;               // empty: one configuration, of the given options; or kAllExperiments
  bool quick = false;                   // one epoch of four steps, two runs, where the user gives no others
  std::optional<std::uint32_t> repeat;  // measured runs; none: 5
};

// One configuration that is to be measured.
struct LabCase {
  std::string name;
  Resolved resolved;
  report::LabOptions axis;
};
struct LabPlan {
  std::string experiment;  // name of the result
  std::vector<LabCase> cases;
  std::vector<std::string> skipped;  // one line for each: what needs something that this build does not have
  std::uint32_t repeat = 5;
};
// Checks everything that can be checked before a process starts. With all experiments, those that need
// something that this build does not have are skipped. Throws UserError.
LabPlan plan_lab(const LabRequest& request, const Registry& registry);

struct LabEvents {
  std::function<void(const std::string& line)> progress;  // several times per second: to be redrawn
  std::function<void(const std::string& line)> message;   // to be kept
};
// How processes are started: LaunchOptions::command and program.
struct LabStart {
  std::vector<std::string> command;
  std::string program;
};
struct LabOutcome {
  report::LabResult result;  // of what has been measured, also after a failure
  ExitCode code = kSuccess;  // that of the failure if there is one configuration; kFailed for several
};
// Measures one configuration after the other. One that fails does not end the others; a stop request does.
LabOutcome run_lab(const LabPlan& plan, const LabStart& start, job::StopToken& stop, const LabEvents& events);

}  // namespace capstan::lab
