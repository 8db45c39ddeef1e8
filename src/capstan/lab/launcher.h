#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "capstan/job/environment.h"
#include "capstan/lab/control.h"
#include "capstan/lab/plan.h"

namespace capstan::lab {

// What the processes report of one run, in the order of their ranks.
struct RunReports {
  std::vector<ProcessReport> trainers, servers;
};

struct LaunchProgress {
  std::uint32_t run = 0;           // 0: the warm-up
  std::uint64_t step = 0, of = 0;  // of the slowest trainer
};

struct LaunchOptions {
  // The program that is started, and its first arguments. --as-trainer=RANK or --as-server=INDEX, and
  // --plan=FILE follow. The token of the processes is in the environment (cluster/token.h).
  std::vector<std::string> command;
  std::string program;  // its name, with which its messages begin
  Plan plan;
  std::uint32_t repeat = 5;  // measured runs, after the warm-up
  std::function<void(const LaunchProgress&)> on_progress;
  std::function<void(const RunReports&)> on_run;  // after each measured run
  // A line that trainer 0 has written to standard error after "note: ".
  std::function<void(const std::string&)> on_note;
};

// Starts servers and trainers, controls them as control.h says, and ends them. There is no limit of time. As
// soon as one of them fails, all are killed, and Failure has its role, its rank and the last line that it
// wrote to standard error: with kLost if it was killed or has stayed stopped, otherwise with its exit code.
// Throws Failure (kInterrupted) on a stop request. Call it on a thread that runs until this process ends.
void launch(const LaunchOptions& options, job::StopToken& stop);

}  // namespace capstan::lab
