#include "capstan/lab/assembly.h"

#include <algorithm>
#include <optional>

#include <ATen/Context.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capstan/base/spelling.h"
#include "capstan/config/given.h"
#include "capstan/config/tasks.h"
#include "capstan/data/dataset.h"
#include "capstan/job/task_factory.h"
#include "capstan/lab/configuration_file.h"
#include "capstan/lab/dataset_data.h"
#include "capstan/lab/ddp_hooks.h"
#include "capstan/lab/limited_task.h"
#include "capstan/lab/plugin_task.h"
#include "capstan/layouts/networks.h"
#include "capstan/strategy/strategy.h"
#include "capstan/training/classification.h"
#include "capstan/training/network.h"
#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

// The entry of that name in the file, or a class of that name without values; none if there is neither.
template <class Table>
std::optional<Entry> find_entry(const Table& classes, Kind kind, const std::filesystem::path& file,
                                const std::string& name) {
  if (!file.empty()) {
    const ConfigurationFile entries(file, kind);
    if (std::ranges::count(entries.names(), name) > 0) return entries.entry(name);
  }
  if (classes.contains(name))
    return Entry{name, Configuration("--" + std::string(flag_of(kind)) + " " + name, {})};
  return {};
}

// Calls the function of the entry's class, and checks that it has read all values.
template <class Table, class... Arguments>
auto make(const Table& classes, const Entry& entry, const Arguments&... arguments) {
  const auto found = classes.find(entry.class_name);
  if (found == classes.end()) {
    std::vector<std::string_view> names;
    for (const auto& [name, unused] : classes) names.push_back(name);
    throw UserError(fmt::format("{}: the class {} is unknown; there are {}", entry.values.place(),
                                entry.class_name, fmt::join(names, ", ")));
  }
  auto plugin = found->second(entry.values, arguments...);
  entry.values.check_all_read();
  return plugin;
}

[[noreturn]] void unknown(std::string_view flag, const std::string& name, std::vector<std::string_view> known,
                          const std::string& others) {
  const auto near = nearest(name, known);
  throw UserError(fmt::format("--{} {}: unknown; {}", flag, name,
                              near.empty() ? fmt::format("there are {}{}", fmt::join(known, ", "), others)
                                           : fmt::format("did you mean {}?", near)));
}

template <class Table>
std::vector<std::string_view> known_names(const Table& classes, Kind kind, const std::filesystem::path& file,
                                          std::vector<std::string>& storage) {
  if (!file.empty()) storage = ConfigurationFile(file, kind).names();
  for (const auto& [name, make] : classes)
    if (std::ranges::count(storage, name) == 0) storage.push_back(name);
  return {storage.begin(), storage.end()};
}

data::Dataset load_dataset(const Plan& plan) {
  data::DatasetOptions options;
  options.name = plan.data;
  options.data_dir = plan.data_dir.string();
  options.seed = plan.seed;
  return data::load(options);
}

std::unique_ptr<Data> make_data(const Plan& plan, const Registry& registry) {
  if (const auto entry = find_entry(registry.data, Kind::kData, plan.data_config, plan.data))
    return make(registry.data, *entry, plan.seed);
  return make_dataset_data(load_dataset(plan));
}

const layouts::NetworkInfo* find_network(const std::string& name) {
  const auto all = layouts::networks();
  const auto found = std::ranges::find(all, name, &layouts::NetworkInfo::name);
  return found == all.end() ? nullptr : &*found;
}

std::unique_ptr<Task> make_workload(const Plan& plan) {
  config::JobConfig config;
  const auto fields = config::fields(config);
  config::apply(fields,
                {config::read_text(std::string(config::find_task(plan.model).defaults), plan.model, fields)});
  config.task = plan.model;
  config.data_dir = plan.data_dir;
  config.seed = plan.seed;
  config.batch_size = static_cast<std::uint32_t>(plan.batch_size);
  return job::make_task(config).task;
}

std::unique_ptr<Task> make_classification(const Plan& plan, const Registry& registry) {
  const auto entry = find_entry(registry.data, Kind::kData, plan.data_config, plan.data);
  auto dataset = entry ? make_plugin_dataset(make(registry.data, *entry, plan.seed)) : load_dataset(plan);
  auto network = training::make_network({.name = plan.model, .init_seed = plan.seed}, dataset.train->shape(),
                                        plan.batch_size);
  return std::make_unique<training::Classification>(std::move(dataset), std::move(network));
}

std::unique_ptr<Task> make_whole_task(const Plan& plan, const Registry& registry) {
  if (const auto entry = find_entry(registry.models, Kind::kModel, plan.model_config, plan.model)) {
    const auto criterion = registry.criteria.find(plan.criterion);
    if (criterion == registry.criteria.end()) {
      std::vector<std::string_view> names;
      for (const auto& [name, function] : registry.criteria) names.push_back(name);
      unknown("create-criterion", plan.criterion, names, "");
    }
    at::manual_seed(plan.seed);
    auto model = make(registry.models, *entry);
    return std::make_unique<PluginTask>(make_data(plan, registry), std::move(model), criterion->second);
  }
  if (std::ranges::find(config::tasks(), plan.model, &config::TaskEntry::name) != config::tasks().end())
    return make_workload(plan);
  if (find_network(plan.model)) return make_classification(plan, registry);
  std::vector<std::string> storage;
  auto known = known_names(registry.models, Kind::kModel, plan.model_config, storage);
  for (const auto& task : config::tasks()) known.push_back(task.name);
  unknown("model", plan.model, known, ", and the networks of `capstan models`");
}

}  // namespace

std::unique_ptr<Task> make_task(const Plan& plan, const Registry& registry) {
  auto task = make_whole_task(plan, registry);
  if (plan.max_steps == 0) return task;
  return limited(std::move(task), plan.max_steps * plan.batch_size * plan.trainers);
}

std::unique_ptr<Trainer> make_trainer(const Plan& plan, const Registry& registry,
                                      const TrainerContext& context) {
  if (const auto entry = find_entry(registry.trainers, Kind::kTrainer, plan.trainer_config, plan.trainer))
    return make(registry.trainers, *entry, context);
  std::vector<std::string> storage;
  auto known = known_names(registry.trainers, Kind::kTrainer, plan.trainer_config, storage);
  for (const auto& strategy : strategy::table()) known.emplace_back(strategy.name);
  unknown("trainer", plan.trainer, known, "");
}

std::unique_ptr<Server> make_server(const Plan& plan, const Registry& registry) {
  if (const auto entry = find_entry(registry.servers, Kind::kServer, plan.server_config, plan.server))
    return make(registry.servers, *entry);
  std::vector<std::string> storage;
  unknown("server", plan.server, known_names(registry.servers, Kind::kServer, plan.server_config, storage),
          "");
}

bool is_strategy(const Plan& plan) {
  const auto name = plan.trainer.substr(0, plan.trainer.find_first_of(":="));
  if (name == "single" || name == "allreduce" || name == "default") return true;
  return std::ranges::any_of(strategy::table(), [&](const auto& entry) { return entry.name == name; });
}

bool uses_group(const Plan& plan) {
  if (is_strategy(plan)) return plan.trainer == "allreduce";
  const auto hook = std::ranges::find(ddp_hooks(), plan.hook, &DdpHook::name);
  return hook == ddp_hooks().end() || hook->uses_group;
}

}  // namespace capstan::lab
