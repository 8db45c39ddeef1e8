#include "capstan/job/task_factory.h"

#include <algorithm>

#include <ATen/Context.h>

#include "capstan/base/check.h"
#include "capstan/base/user_error.h"
#include "capstan/job/dataset_options.h"
#include "capstan/models/arena.h"
#include "capstan/models/buffers.h"
#include "capstan/training/classification.h"
#include "capstan/training/network.h"
#include "capstan/training/state_dict.h"
#include "capstan/workloads/registry.h"

namespace capstan::job {
namespace {

constexpr std::uint64_t kAnyBatch = 2;  // for evaluation, where it does not matter

training::NetworkOptions network_options(const config::JobConfig& config) {
  return {config.network, config.num_classes, config.init_seed.value_or(config.seed),
          config.resumes() ? std::filesystem::path() : config.weights};
}

std::unique_ptr<Task> classification(const config::JobConfig& config, bool test_only) {
  auto options = dataset_options(config);
  options.test_only = test_only;
  auto dataset = data::load(options);
  auto model = training::make_network(network_options(config), dataset.test->shape(),
                                      test_only ? kAnyBatch : config.batch_size);
  return std::make_unique<training::Classification>(std::move(dataset), std::move(model));
}

std::unique_ptr<Task> workload(const config::JobConfig& config, bool test_only) {
  const auto entry = std::ranges::find(workloads::table(), config.task, &workloads::Entry::name);
  CAPSTAN_CHECK(entry != workloads::table().end(), "the tables of tasks have the same entries");
  workloads::TaskOptions options{dataset_options(config), config.init_seed.value_or(config.seed)};
  options.dataset.test_only = test_only;
  auto task = entry->make(options);
  if (!config.weights.empty() && !config.resumes())
    training::load_state_dict(task->parameters(), task->buffers(), config.weights);
  return task;
}

std::unique_ptr<Task> make(const config::JobConfig& config, bool test_only) {
  return config.task.empty() ? classification(config, test_only) : workload(config, test_only);
}

PreparedTask prepared(std::unique_ptr<Task> task) {
  auto layout = models::layout_of(task->parameters());
  auto buffer_layout = models::buffer_layout_of(task->buffers());
  return {std::move(task), std::move(layout), std::move(buffer_layout)};
}

}  // namespace

PreparedTask make_task(const config::JobConfig& config) {
  return prepared(make(config, false));
}

PreparedTask make_test_task(const config::JobConfig& config) {
  return prepared(make(config, true));
}

void check_device(const std::string& device) {
  if (device == "cpu") return;
  if (!at::globalContext().hasCUDA())
    throw UserError("--device cuda: this libtorch has no CUDA; use --device cpu");
  throw UserError("--device cuda: workers compute on the CPU only for now; use --device cpu");
}

}  // namespace capstan::job
