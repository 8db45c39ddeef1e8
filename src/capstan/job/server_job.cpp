#include "capstan/job/server_job.h"

#include <algorithm>
#include <stdexcept>

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "capstan/base/failure.h"
#include "capstan/base/text.h"
#include "capstan/client/connector.h"
#include "capstan/client/observer.h"
#include "capstan/job/evaluator_process.h"
#include "capstan/job/stop_watch.h"
#include "capstan/job/supervisor.h"
#include "capstan/launch/local_job.h"
#include "capstan/training/evaluator.h"
#include "capstan/training/task_errors.h"

namespace capstan::job {
namespace {

constexpr std::uint64_t kMostLossWindow = 1'000'000;

std::string configuration(const std::filesystem::path& run) {
  return "--config=" + (run / kConfiguration).string();
}

std::string resume(const PreparedJob& job) {
  return "--resume=" + job.resume->folder.string();
}

// Every server gets the run folder; only the leader uses it.
std::vector<std::string> serve_arguments(const PreparedJob& job, const std::filesystem::path& run) {
  std::vector<std::string> arguments = {
      configuration(run), "--transport=" + job.config.transport,
      fmt::format("--total-steps={}", job.budget.scheduled),
      fmt::format("--loss-window={}", std::min(job.budget.per_epoch, kMostLossWindow)),
      "--train-dir=" + run.string()};
  if (job.resume) arguments.push_back(resume(job));
  return arguments;
}

std::vector<std::string> work_arguments(const std::string& program, const PreparedJob& job,
                                        const std::filesystem::path& run, const std::string& servers,
                                        std::uint32_t rank) {
  std::vector<std::string> arguments = {program,
                                        "work",
                                        configuration(run),
                                        "--transport=" + job.config.transport,
                                        "--server=" + servers,
                                        fmt::format("--rank={}", rank)};
  if (job.resume) arguments.push_back(resume(job));
  return arguments;
}

std::unique_ptr<client::Observer> observe(const launch::LocalJob& processes, const std::string& transport) {
  client::LinkOptions link;
  link.servers = processes.addresses();
  link.token = processes.token();
  auto joined = client::Observer::join(link, client::make_connector(client::parse_transport(transport)));
  if (!joined) throw Failure(kLost, joined.status().message());
  return std::move(*joined);
}

// The task's parameters are views of the weights, so these are kept until the next evaluation.
Evaluate evaluate_with(PreparedTask& task, unsigned loader_threads) {
  return [&task, loader_threads, kept = std::make_shared<std::vector<float>>()](
             std::vector<float> weights, std::vector<float> buffers, const std::atomic<bool>& cancel) {
    kept->swap(weights);
    try {
      return training::evaluate(*task.task, task.layout, *kept, buffers, {loader_threads, 0, &cancel});
    } catch (const c10::Error& error) {  // its what() has a stack trace
      throw std::runtime_error(training::reason_of(error));
    }
  };
}

}  // namespace

TrainResult train_with_servers(PreparedJob& job, Environment environment, RunRecord& record,
                               const RunOptions& options, const cluster::Token& token, bool starts_workers) {
  const auto& config = job.config;
  // The supervisor handles two requests, but may have to wait for an evaluation that computes.
  const StopWatch watch(environment, 0, 2);
  const auto give_up_when_asked = [&] {
    if (environment.stop.requests() > 0)
      throw Failure(kInterrupted, "interrupted before the servers had started");
  };
  launch::LocalJob processes({environment.program.path, config.servers, serve_arguments(job, record.path()),
                              config.listen, token, record.path(), give_up_when_asked});
  auto observer = observe(processes, config.transport);
  if (!starts_workers)
    environment.events.message(fmt::format("listening on {}: waiting for {}", processes.addresses()[0],
                                           counted(config.workers, "worker")));
  for (std::uint32_t rank = 0; starts_workers && rank < config.workers; ++rank)
    processes.start_worker(
        work_arguments(environment.program.trainer, job, record.path(), processes.address_list(), rank));
  EvaluatorProcess evaluator(options.evaluator, record.path(), environment);
  const auto resume = job.resume ? std::optional(job.resume->manifest) : std::nullopt;
  return Supervisor({config, job.budget, job.task.layout, job.task.buffer_layout, job.task.task->metrics(),
                     job.task.training_samples(), resume, starts_workers, options.progress_interval},
                    environment, record, processes, std::move(observer), evaluate_with(job.task, 1),
                    evaluator)
      .run();
}

}  // namespace capstan::job
