#include "capstan/job/task_factory.h"

#include <ATen/Context.h>

#include "capstan/base/user_error.h"
#include "capstan/job/dataset_options.h"
#include "capstan/models/arena.h"
#include "capstan/models/buffers.h"
#include "capstan/training/classification.h"
#include "capstan/training/network.h"

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

PreparedTask prepared(std::unique_ptr<Task> task) {
  auto layout = models::layout_of(task->parameters());
  auto buffer_layout = models::buffer_layout_of(task->buffers());
  return {std::move(task), std::move(layout), std::move(buffer_layout)};
}

}  // namespace

PreparedTask make_task(const config::JobConfig& config) {
  return prepared(classification(config, false));
}

PreparedTask make_test_task(const config::JobConfig& config) {
  return prepared(classification(config, true));
}

void check_device(const std::string& device) {
  if (device == "cpu") return;
  if (!at::globalContext().hasCUDA())
    throw UserError("--device cuda: this libtorch has no CUDA; use --device cpu");
  throw UserError("--device cuda: workers compute on the CPU only for now; use --device cpu");
}

}  // namespace capstan::job
