#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace capstan {
class Task;
struct TaskOptions;
}  // namespace capstan

namespace capstan::job {

// The program that runs a job: what it starts as the job's other processes, and where its task comes from.
// Capstan itself, or a program that is linked with the library (capstan/torch/run.h). A value.
struct Program {
  std::string name = {};     // in help and before messages
  std::string path = {};     // of the file that the user starts; it has the command serve
  std::string trainer = {};  // path of the program that has train, work and eval
  // The program's own task; empty: the tasks of Capstan.
  std::function<std::unique_ptr<Task>(const TaskOptions&)> make_task = {};
  std::string description = {};                      // of its own task, for help
  std::map<std::string, std::string> defaults = {};  // of flags, instead of Capstan's

  bool has_own_task() const { return static_cast<bool>(make_task); }
};

// The programs of Capstan, in the folder of this executable.
const Program& capstan_program();

}  // namespace capstan::job
