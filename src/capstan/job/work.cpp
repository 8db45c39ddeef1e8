#include "capstan/job/work.h"

#include <fmt/format.h>

#include "capstan/base/failure.h"
#include "capstan/base/json.h"
#include "capstan/base/text.h"
#include "capstan/checkpoint/model_file.h"
#include "capstan/client/connector.h"
#include "capstan/client/observer.h"
#include "capstan/config/shared_fields.h"
#include "capstan/job/module_file.h"
#include "capstan/job/stop_watch.h"
#include "capstan/job/task_factory.h"
#include "capstan/job/warnings.h"
#include "capstan/models/arena.h"
#include "capstan/models/buffers.h"
#include "capstan/user_error.h"

namespace capstan::job {
namespace {

void check_save(const std::filesystem::path& save) {
  if (save.empty()) return;
  if (!std::filesystem::is_directory(std::filesystem::absolute(save).parent_path()))
    throw UserError(fmt::format("--save {}: no such folder", save.string()));
  checkpoint::check_model_file(save);
}

client::LinkOptions link_options(const WorkOptions& options) {
  client::LinkOptions link;
  link.servers = options.servers;
  link.token = options.token;
  link.index = options.rank;
  link.job = config::given_text(options.config);
  link.connect_timeout = from_seconds(options.connect_timeout);
  return link;
}

client::Connector connector(const WorkOptions& options) {
  return client::make_connector(client::parse_transport(options.config.transport), options.servers);
}

[[noreturn]] void cannot_join(const Status& why) {
  throw Failure(why.code() == StatusCode::kRefused ? kWrongUsage : kLost, why.message());
}

// The leader provides the job's configuration; this worker's own must not contradict it. The default numbers
// of threads are computed before: the job's workers need not share this host.
config::JobConfig fetch_configuration(const WorkOptions& options) {
  auto link = link_options(options);
  link.index.reset();  // a rank is no observer's index
  const auto job = client::Observer::fetch_job(link, connector(options));
  if (!job) cannot_join(job.status());
  auto config = options.config;
  config.threads = config.worker_threads();
  config.loader_threads = config.threads_per_loader();
  if (!job->empty()) config::adopt(config, *job);
  return config;
}

std::unique_ptr<client::WorkerClient> join(const WorkOptions& options, const config::JobConfig& config,
                                           const PreparedTask& task, std::span<const float> initial) {
  auto joined = client::WorkerClient::join(
      link_options(options), connector(options), task.layout, initial,
      {task.buffer_layout, {task.training_samples(), config.seed, config.batch_size}, task.task->phases()});
  if (!joined) cannot_join(joined.status());
  return std::move(*joined);
}

}  // namespace

WorkResult work(const WorkOptions& options, Environment environment) {
  check_save(options.save);
  // After one request a worker finishes its step and leaves, if it is training.
  StopWatch stop(environment, 0, 0);
  auto config = fetch_configuration(options);
  config.validate_model();
  set_module_digest(config);
  const auto task = make_task(config, environment.program);
  std::vector<float> flat(task.layout.size());
  models::copy_parameters_out(task.task->parameters(), task.layout, flat);
  const auto client = join(options, config, task, flat);
  const auto worked =
      training::run_worker(*client, *task.task, task.layout,
                           {config.batch_size, config.epochs, config.seed, &stop.asked,
                            [&stop] { stop.training = true; }, config.threads_per_loader(),
                            options.slow_down.value_or(options.rank ? config.slow_down(*options.rank) : 1)});
  if (!worked) throw Failure(kLost, worked.status().message());
  for (const auto& line : task.task->warnings(Split::kTrain)) environment.events.message(as_warning(line));
  if (!options.save.empty()) {
    models::copy_parameters_out(task.task->parameters(), task.layout, flat);
    checkpoint::write_model(options.save, task.layout, flat, task.buffer_layout,
                            models::copy_buffers_out(task.task->buffers()), task.aliases);
  }
  return {client->rank().value, *worked, stop.asked};
}

std::string WorkResult::json() const {
  Json json{{"ok", !interrupted},
            {"rank", rank},
            {"steps", worked.steps},
            {"samples", worked.samples},
            {"compute_seconds", worked.compute_seconds},
            {"communication_seconds", worked.communication_seconds},
            {"data_seconds", worked.data_seconds}};
  if (interrupted) json["error"] = "interrupted";
  return json_line(json);
}

std::string WorkResult::text() const {
  return fmt::format("worker {}: {} steps, {} samples; computed {:.1f} s, waited {:.1f} s", rank,
                     worked.steps, worked.samples, worked.compute_seconds, worked.communication_seconds);
}

}  // namespace capstan::job
