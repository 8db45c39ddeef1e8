#include "capstan/job/task_factory.h"

#include <ATen/Context.h>

#include "capstan/base/user_error.h"
#include "capstan/job/dataset_options.h"
#include "capstan/models/arena.h"
#include "capstan/models/buffers.h"

namespace capstan::job {
namespace {

constexpr std::uint64_t kAnyBatch = 2;  // for evaluation, where it does not matter

Task task_of(const config::JobConfig& config, data::Dataset dataset, const data::ImageShape& shape,
             std::uint64_t batch) {
  auto model = training::make_network(network_options(config), shape, batch);
  auto layout = models::layout_of(*model);
  auto buffer_layout = models::buffer_layout_of(*model);
  return {std::move(dataset), std::move(model), std::move(layout), std::move(buffer_layout)};
}

}  // namespace

training::NetworkOptions network_options(const config::JobConfig& config) {
  return {config.network, config.num_classes, config.init_seed.value_or(config.seed),
          config.resumes() ? std::filesystem::path() : config.weights};
}

Task make_task(const config::JobConfig& config) {
  auto dataset = data::load(dataset_options(config));
  const auto shape = dataset.train->shape();
  return task_of(config, std::move(dataset), shape, config.batch_size);
}

Task make_test_task(const config::JobConfig& config) {
  auto options = dataset_options(config);
  options.test_only = true;
  auto dataset = data::load(options);
  const auto shape = dataset.test->shape();
  return task_of(config, std::move(dataset), shape, kAnyBatch);
}

void check_device(const std::string& device) {
  if (device == "cpu") return;
  if (!at::globalContext().hasCUDA())
    throw UserError("--device cuda: this libtorch has no CUDA; use --device cpu");
  throw UserError("--device cuda: workers compute on the CPU only for now; use --device cpu");
}

}  // namespace capstan::job
