#include "capstan/job/task_factory.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include <ATen/Context.h>
#include <fmt/format.h>

#include "capstan/base/check.h"
#include "capstan/job/dataset_options.h"
#include "capstan/job/module_file.h"
#include "capstan/job/own_task.h"
#include "capstan/job/run_record.h"
#include "capstan/models/arena.h"
#include "capstan/models/buffers.h"
#include "capstan/training/aliases.h"
#include "capstan/training/classification.h"
#include "capstan/training/network.h"
#include "capstan/training/scripted_task.h"
#include "capstan/training/state_dict.h"
#include "capstan/user_error.h"
#include "capstan/workloads/registry.h"

namespace capstan::job {
namespace {

constexpr std::uint64_t kAnyBatch = 2;  // for evaluation, where it does not matter

// As the run has written it; no value if there is none.
std::optional<data::Encoding> encoding_of(const std::filesystem::path& run) {
  const auto path = run / kDataset;
  std::ifstream in(path);
  if (!in) return {};
  return data::Encoding::parse({std::istreambuf_iterator<char>(in), {}}, path.string());
}

PreparedTask classification(const config::JobConfig& config, const data::DatasetOptions& options) {
  auto dataset = data::load(options);
  auto encoding = dataset.encoding.to_json();
  auto model =
      training::make_network({config.network, config.num_classes, config.init_seed.value_or(config.seed),
                              config.resumes() ? std::filesystem::path() : config.weights},
                             dataset.test->shape(), options.test_only ? kAnyBatch : config.batch_size);
  return with_layouts(std::make_unique<training::Classification>(std::move(dataset), std::move(model)),
                      std::move(encoding));
}

PreparedTask scripted(const config::JobConfig& config, const data::DatasetOptions& options) {
  auto dataset = data::load(options);
  auto encoding = dataset.encoding.to_json();
  return with_layouts(
      training::make_scripted_task(
          {config.network, config.loss, config.resumes() ? std::filesystem::path() : config.weights,
           options.test_only ? kAnyBatch : config.batch_size},
          std::move(dataset)),
      std::move(encoding));
}

PreparedTask workload(const config::JobConfig& config, const data::DatasetOptions& options) {
  const auto entry = std::ranges::find(workloads::table(), config.task, &workloads::Entry::name);
  CAPSTAN_CHECK(entry != workloads::table().end(), "the tables of tasks have the same entries");
  auto task = entry->make({options, config.init_seed.value_or(config.seed)});
  if (!config.weights.empty() && !config.resumes())
    training::load_state_dict(task->parameters(), task->buffers(), config.weights);
  return with_layouts(std::move(task), "");
}

PreparedTask make(const config::JobConfig& config, const data::DatasetOptions& options) {
  if (!config.program.empty())
    throw UserError(
        fmt::format("the task is one of the program {0}: use {0} instead of capstan", config.program));
  if (!config.task.empty()) return workload(config, options);
  return config.has_module() ? scripted(config, options) : classification(config, options);
}

}  // namespace

PreparedTask with_layouts(std::unique_ptr<Task> task, std::string dataset) {
  auto layout = models::layout_of(task->parameters());
  auto buffer_layout = models::buffer_layout_of(task->buffers());
  auto aliases = training::aliases_of(task->parameters(), task->buffers());
  return {std::move(task), std::move(layout), std::move(buffer_layout), std::move(aliases),
          std::move(dataset)};
}

PreparedTask make_task(const config::JobConfig& config, const Program& program) {
  if (program.has_own_task()) return make_own_task(config, program, /*test_only=*/false);
  return make(config, dataset_options(config));
}

PreparedTask make_test_task(const config::JobConfig& config, const Program& program) {
  if (program.has_own_task()) return make_own_task(config, program, /*test_only=*/true);
  auto own = config;
  set_module_digest(own);
  auto options = dataset_options(own);
  options.test_only = true;
  options.encoding = encoding_of(own.train_dir);
  return make(own, options);
}

void check_device(const std::string& device) {
  if (device == "cpu") return;
  if (!at::globalContext().hasCUDA())
    throw UserError("--device cuda: this libtorch has no CUDA; use --device cpu");
  throw UserError("--device cuda: workers compute on the CPU only for now; use --device cpu");
}

}  // namespace capstan::job
