#include "capstan/lab/assembly.h"

#include <algorithm>

#include <ATen/Context.h>
#include <fmt/format.h>

#include "capstan/config/given.h"
#include "capstan/config/tasks.h"
#include "capstan/data/dataset.h"
#include "capstan/job/task_factory.h"
#include "capstan/lab/dataset_data.h"
#include "capstan/lab/ddp_hooks.h"
#include "capstan/lab/limited_task.h"
#include "capstan/lab/names.h"
#include "capstan/lab/plugin_task.h"
#include "capstan/training/classification.h"
#include "capstan/training/network.h"
#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

// A plug-in by its entry; empty if there is no class of that name. Checks that it has read all values.
template <class Table, class... Arguments>
auto make(const Table& classes, const Entry& entry, const Arguments&... arguments) ->
    typename Table::mapped_type::result_type {
  const auto found = classes.find(entry.class_name);
  if (found == classes.end()) return {};
  auto plugin = found->second(entry.values, arguments...);
  entry.values.check_all_read();
  return plugin;
}

[[noreturn]] void unknown(const char* kind, const std::string& name) {
  throw UserError(fmt::format("there is no {} {}", kind, name));
}

data::Dataset load_dataset(const Plan& plan) {
  data::DatasetOptions options;
  options.name = plan.data;
  options.data_dir = plan.data_dir.string();
  options.seed = plan.seed;
  return data::load(options);
}

std::unique_ptr<Data> make_plugin_data(const Plan& plan, const Registry& registry) {
  return make(registry.data, plugin_entry(plan, Kind::kData), plan.seed);
}

bool is_task(const std::string& name) {
  return std::ranges::find(config::tasks(), name, &config::TaskEntry::name) != config::tasks().end();
}

std::unique_ptr<Task> make_workload(const Plan& plan) {
  config::JobConfig config;
  const auto fields = config::fields(config);
  const std::string defaults(config::find_task(plan.model).defaults);
  config::apply(fields, {config::read_text(defaults, plan.model, fields)});
  config.task = plan.model;
  if (!plan.data.empty()) config.dataset = plan.data;
  config.data_dir = plan.data_dir;
  config.seed = plan.seed;
  config.batch_size = static_cast<std::uint32_t>(plan.batch_size);
  return job::make_task(config).task;
}

std::unique_ptr<Task> make_classification(const Plan& plan, const Registry& registry) {
  auto data = make_plugin_data(plan, registry);
  auto dataset = data ? make_plugin_dataset(std::move(data)) : load_dataset(plan);
  auto network = training::make_network({.name = plan.model, .init_seed = plan.seed}, dataset.train->shape(),
                                        plan.batch_size);
  return std::make_unique<training::Classification>(std::move(dataset), std::move(network));
}

std::unique_ptr<Task> make_whole_task(const Plan& plan, const Registry& registry) {
  at::manual_seed(plan.seed);
  if (auto model = make(registry.models, plugin_entry(plan, Kind::kModel))) {
    const auto criterion = registry.criteria.find(plan.criterion);
    if (criterion == registry.criteria.end()) unknown("criterion", plan.criterion);
    auto data = make_plugin_data(plan, registry);
    if (!data) data = make_dataset_data(load_dataset(plan));
    return std::make_unique<PluginTask>(std::move(data), std::move(model), criterion->second);
  }
  return is_task(plan.model) ? make_workload(plan) : make_classification(plan, registry);
}

}  // namespace

std::unique_ptr<Task> make_task(const Plan& plan, const Registry& registry) {
  auto task = make_whole_task(plan, registry);
  if (plan.max_steps == 0) return task;
  return limited(std::move(task), plan.max_steps * plan.batch_size * plan.trainers);
}

std::unique_ptr<Trainer> make_trainer(const Plan& plan, const Registry& registry,
                                      const TrainerContext& context) {
  auto entry = plugin_entry(plan, Kind::kTrainer);
  if (find_trainer_alias(entry.class_name)) entry.class_name = kDdpTrainer;
  if (auto trainer = make(registry.trainers, entry, context)) return trainer;
  unknown("trainer", plan.trainer);
}

std::unique_ptr<Server> make_server(const Plan& plan, const Registry& registry) {
  if (auto server = make(registry.servers, plugin_entry(plan, Kind::kServer))) return server;
  unknown("server", plan.server);
}

TrainerContext trainer_context(const Plan& plan, std::uint32_t rank, MetricsLogger& metrics) {
  TrainerContext context;
  context.rank = rank;
  context.trainers = plan.trainers;
  context.seed = plan.seed;
  context.epochs = plan.epochs;
  context.batch_size = plan.batch_size;
  context.learning_rate = plan.lr;
  context.optimizer = plan.optimizer;
  context.hook = plan.hook;
  context.connect_timeout = plan.rpc_timeout;
  context.metrics = &metrics;
  return context;
}

bool uses_group(const Plan& plan) {
  if (is_strategy(plan.trainer)) return plan.trainer == "allreduce";
  if (plan.trainer == kLocalTrainer) return false;
  const auto entry = plugin_entry(plan, Kind::kTrainer);
  const bool is_ddp = entry.class_name == kDdpTrainer || find_trainer_alias(entry.class_name);
  return !is_ddp || find_hook(plan.hook).uses_group;
}

}  // namespace capstan::lab
