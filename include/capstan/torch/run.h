#pragma once

#include "capstan/cxx20.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <capstan/torch/task.h>

namespace capstan {

// What a task is made from. All processes of a job have the same values, except for data_dir.
struct TaskOptions {
  std::uint64_t seed = 1;          // of the initial weights; libtorch's generator already has it
  std::string dataset;             // of --dataset
  std::filesystem::path data_dir;  // of --data-dir; empty if it is not given
  bool test_only = false;          // the training split is not used
};

// Called once per process. An exception that it throws ends the program with one line and exit code 2.
using TaskFactory = std::function<std::unique_ptr<Task>(const TaskOptions&)>;

struct RunOptions {
  std::string name = {};         // of the program in run folders and messages; empty: the name of its file
  std::string description = {};  // one line about the task, for --help
  // Of flags that are not given: {{"epochs", "20"}, {"lr", "0.05"}}. Names are those of flags, without dashes
  // in front.
  std::map<std::string, std::string> defaults = {};
};

// The whole of a program that trains one task. Its commands train, work, eval and serve have the flags, the
// output, the run folder and the exit codes of Capstan's. The program starts itself as the other processes of
// a job, so call this first in main(), and pass its result on.
int run(int argc, char** argv, const TaskFactory& make, const RunOptions& options = {});

}  // namespace capstan
