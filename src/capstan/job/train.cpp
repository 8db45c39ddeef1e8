#include "capstan/job/train.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "capstan/client/connector.h"
#include "capstan/job/allreduce_group.h"
#include "capstan/job/module_file.h"
#include "capstan/job/resume.h"
#include "capstan/job/server_job.h"
#include "capstan/job/stop_watch.h"
#include "capstan/job/versions.h"
#include "capstan/job/warnings.h"
#include "capstan/training/threads.h"
#include "capstan/user_error.h"

namespace capstan::job {
namespace {

std::string state_text(const std::vector<std::string>& state) {
  return state.empty() ? "no optimizer state" : fmt::format("the optimizer state {}", fmt::join(state, ", "));
}

// The options that may make the difference between two lists of optimizer state.
std::string options_of(const std::vector<std::string>& before, const std::vector<std::string>& now,
                       bool other_strategy) {
  const auto differs = [&](const char* name) {
    return std::ranges::count(before, name) != std::ranges::count(now, name);
  };
  const std::string option = differs("momentum_buffer") ? "--momentum"
                             : differs("grad_avg")      ? "--centered"
                                                        : "";
  if (option.empty()) return "--strategy";
  return other_strategy ? option + " and --strategy" : option;
}

// A checkpoint of another network or another training set cannot be resumed.
void check_resumed(const checkpoint::Found& found, const PreparedTask& task,
                   const config::JobConfig& config) {
  const auto& from = found.manifest;
  const auto folder = found.folder.string();
  if (const auto difference = task.layout.difference(FlatLayout(from.parameters)); !difference.empty())
    throw UserError(
        fmt::format("{} does not match network {}: {}", folder, config.network_name(), difference));
  const auto kind = config.optimizer.spec().kinds();
  if (from.optimizer != kind)
    throw UserError(
        fmt::format("{} was written with {}, not {}: see --optimizer", folder, from.optimizer, kind));
  if (const auto state = state_names(config); from.state != state)
    throw UserError(fmt::format("{} has {}, but {} with these options has {}: see {}", folder,
                                state_text(from.state), kind, state.empty() ? "none" : state_text(state),
                                options_of(from.state, state, from.strategy != config.strategy)));
  const auto samples = task.training_samples();
  if (from.samples > 0 && (from.samples != samples || from.seed != config.seed))
    throw UserError(
        fmt::format("{} was trained on {} samples with seed {}; this run has {} samples and seed {}", folder,
                    from.samples, from.seed, samples, config.seed));
}

// Weights belong to one encoding of the data: other categories, columns or statistics give them another
// meaning.
void check_dataset(const std::filesystem::path& run, const PreparedTask& task) {
  std::ifstream in(run / kDataset);
  const std::string before{std::istreambuf_iterator<char>(in), {}};
  if (before.empty() || task.dataset.empty() || before == task.dataset + "\n") return;
  throw UserError(
      fmt::format("{} describes other data than the dataset has now: its categories, columns or statistics "
                  "have changed since the run began; use the same files",
                  (run / kDataset).string()));
}

// Rejects groups without tensors, and strategies and optimizers that cannot be combined with the task's
// phases or row tensors.
void check_groups(const config::JobConfig& config, const PreparedTask& task) {
  auto table = config.group_table();
  table.phases = task.task->phases();
  const ParameterGroups groups(task.layout, table);
  optimizer::check_rows(config.optimizer.spec(), task.layout, groups);
  if (!config.has_servers()) return;
  config.strategy_spec().check_phases(groups);
  config.strategy_spec().check_rows(task.layout, groups);
}

// The limit may come from the resumed run's configuration, so the message names it.
std::string nothing_left(const config::JobConfig& config, std::uint64_t updates) {
  const auto why = config.max_steps > 0 && config.max_steps <= updates
                       ? fmt::format("--max-steps {} is reached (0 lifts the limit)", config.max_steps)
                       : fmt::format("--epochs {} is reached", config.epochs);
  return fmt::format("nothing is left to train after {} updates: {}", updates, why);
}

RunRecord open_record(const PreparedJob& job, const std::string& toml, Environment environment) {
  const auto& config = job.config;
  if (!job.same_run) check_no_run(config.train_dir);
  RunRecord record(metrics::RunFolder(
      config.train_dir, fmt::format("{}-{}", config.network_name(), config.dataset), job.same_run));
  record.write_configuration(toml);
  record.write_versions(versions());
  if (!job.task.dataset.empty()) record.write_dataset(job.task.dataset);
  record.write_aliases(job.task.aliases);
  if (!job.resume) return record;
  const auto start = job.budget.start.value;
  environment.events.message(fmt::format("resuming from step {}: {}", start, job.resume->folder.string()));
  if (job.budget.total <= start) environment.events.message(nothing_left(config, start));
  record.resumed(job.budget.start);
  return record;
}

TrainResult run(PreparedJob& job, const TrainOptions& options, Environment environment, RunRecord& record) {
  if (job.config.is_single()) return SingleProcess(job, environment, record, options.run).run();
  if (job.config.is_allreduce()) return train_allreduce(job, environment, record, options.run);
  return train_with_servers(job, environment, record, options.run, options.token, options.starts_workers);
}

}  // namespace

PreparedJob prepare(config::JobConfig config, Environment environment) {
  const StopWatch watch(environment, 0, 0);  // nothing is to be saved yet
  std::vector<std::string> complaints;
  auto resumed = find_resume(config, complaints);
  for (const auto& complaint : complaints)
    environment.events.message(
        fmt::format("{}: {}: using the previous checkpoint", environment.program.name, complaint));
  if (resumed) {
    if (configuration_of(resumed->run).empty())
      environment.events.message(
          fmt::format("{} is a checkpoint without {}: using the options given and defaults",
                      resumed->from.folder.string(), kConfiguration));
    for (const auto& change : changes(resumed->run, config))
      environment.events.message("resuming with " + change);
    if (config.train_dir.empty()) config.train_dir = resumed->run;
    config.resume = resumed->from.folder.string();  // also for `auto`: network_options() depends on it
  }
  set_module_digest(config);
  auto task = make_task(config, environment.program);
  check_groups(config, task);
  if (resumed) check_resumed(resumed->from, task, config);
  if (resumed) check_dataset(resumed->run, task);
  // Only the folder of the resumed run is reused, or the one that `auto` names if it has no update yet: that
  // run starts again.
  std::error_code none;
  const bool same_run =
      resumed ? std::filesystem::equivalent(config.train_dir, resumed->run, none)
              : config.resume == "auto" && !config.train_dir.empty() && !has_made_an_update(config.train_dir);
  auto budget = budget_steps(config, task.training_samples(), resumed ? &resumed->from.manifest : nullptr);
  (void)config.optimizer.schedule(budget.scheduled);  // rejects invalid schedules
  return {std::move(config), std::move(task),
          resumed ? std::optional(std::move(resumed->from)) : std::nullopt, std::move(budget), same_run};
}

DryRun dry_run(const PreparedJob& job) {
  return {job.config,
          job.task.layout.parameters(),
          job.task.training_samples(),
          job.task.task->split(Split::kTest).samples,
          job.budget,
          estimate(job.config, job.task.layout, job.task.task->phases()),
          job.task.task->metrics()};
}

TrainResult train(PreparedJob job, const TrainOptions& options, Environment environment) {
  auto& config = job.config;
  const auto toml = config.to_toml();  // before `transport` is set: a repeated job may run on several hosts
  if (config.transport == "auto" && config.has_servers() && options.starts_workers) {
    if (!client::is_this_host(client::parse_address(config.listen).host))
      throw UserError(
          fmt::format("--listen {}: is not an address of this host, such as 127.0.0.1:0", config.listen));
    config.transport = "local";
  }
  training::configure_torch(static_cast<int>(config.has_servers() ? 1 : config.worker_threads()));
  auto record = open_record(job, toml, environment);
  auto result = run(job, options, environment, record);
  for (const auto& line : job.task.task->warnings(Split::kTest)) environment.events.message(as_warning(line));
  if (result.test.samples > 0 && !result.test.is_finite() && result.problem.empty())
    result.problem = "the test loss is not a finite number: training has diverged; a smaller --lr may help";
  record.result(result);
  if (!record.is_complete())
    environment.events.message(fmt::format("{}: {}/metrics.jsonl is not complete: is the disk full?",
                                           environment.program.name, result.run_dir));
  return result;
}

}  // namespace capstan::job
