#include "capstan/job/own_task.h"

#include <set>

#include <ATen/Context.h>
#include <fmt/format.h>

#include "capstan/torch/run.h"
#include "capstan/training/state_dict.h"
#include "capstan/training/task_errors.h"
#include "capstan/user_error.h"

namespace capstan::job {
namespace {

std::unique_ptr<Task> call_factory(const config::JobConfig& config, const Program& program, bool test_only) {
  const TaskOptions options{config.init_seed.value_or(config.seed), config.dataset, config.data_dir,
                            test_only};
  at::manual_seed(options.seed);
  try {
    return program.make_task(options);
  } catch (...) {
    training::rethrow_from_task("the factory");
  }
}

void check_names(const Task& task) {
  std::set<std::string> names;
  const auto add = [&](const std::string& name) {
    if (!names.insert(name).second)
      throw UserError(fmt::format(
          "parameters() and buffers() of the task have {} twice: a name or alias belongs to one tensor",
          name));
  };
  for (const auto* list : {&task.parameters(), &task.buffers()}) {
    for (const auto& tensor : *list) {
      add(tensor.name);
      for (const auto& alias : tensor.aliases) add(alias);
    }
  }
}

void check(const Task& task, bool test_only) {
  if (task.parameters().empty()) throw UserError("parameters() of the task is empty: nothing can be trained");
  for (const auto& parameter : task.parameters()) training::check_parameter(parameter);
  check_names(task);
  if (task.metrics().empty()) throw UserError("metrics() of the task is empty: it must have at least one");
  if (!test_only && task.split(Split::kTrain).samples == 0)
    throw UserError("split(Split::kTrain) of the task has no samples");
  if (task.split(Split::kTest).samples == 0)
    throw UserError("split(Split::kTest) of the task has no samples");
}

}  // namespace

PreparedTask make_own_task(const config::JobConfig& config, const Program& program, bool test_only) {
  // A job of Capstan's networks has no program.
  if (config.program != program.name || config.network != program.name)
    throw UserError(fmt::format("this is a job of {}, not of {}: use the program that started it",
                                config.network, program.name));
  auto task = call_factory(config, program, test_only);
  if (!task) throw UserError("the factory of the task returned no task");
  try {
    check(*task, test_only);
    if (!config.weights.empty() && !config.resumes())
      training::load_state_dict(task->parameters(), task->buffers(), config.weights);
    return with_layouts(std::move(task));
  } catch (...) {
    training::rethrow_from_task("parameters(), metrics() or split()");
  }
}

}  // namespace capstan::job
