#include <atomic>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "capstan/base/json.h"
#include "capstan/base/user_error.h"
#include "capstan/checkpoint/model_file.h"
#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/device.h"
#include "capstan/cli/job_dataset.h"
#include "capstan/cli/network.h"
#include "capstan/cli/output.h"
#include "capstan/cli/signals.h"
#include "capstan/client/connector.h"
#include "capstan/cluster/token.h"
#include "capstan/models/arena.h"
#include "capstan/models/buffers.h"
#include "capstan/training/evaluate.h"
#include "capstan/training/threads.h"
#include "capstan/training/worker.h"

namespace capstan::cli {
namespace {

[[noreturn]] void end_at_once(bool json) {
  say("capstan: interrupted");
  if (json) std::puts(json_line(Json{{"ok", false}, {"error", "interrupted"}}).c_str());
  std::fflush(stdout);
  ::_exit(kInterrupted);
}

}  // namespace

int run_work(const Arguments& arguments) {
  config::JobConfig job;
  std::string servers;
  std::optional<std::uint32_t> rank;
  double connect_timeout = 30;
  std::filesystem::path save;
  std::optional<double> slow_down;
  bool json = false;
  CommandLine line("work",
                   "One worker: computes gradients on its part of the data for the servers of a job.\n\n"
                   "  capstan work --server thathost:7000 --dataset digits --token-file job.token\n");
  line.add({.name = "server",
            .value = &servers,
            .help = "HOST:PORT of the job's server; of several, with commas, the first leads",
            .group = "Connection",
            .required = true});
  line.add({.name = "rank",
            .value = &rank,
            .limits = config::WholeRange{0, 4095},
            .help = "Which worker to be, from 0 (default: the first place that is free)",
            .group = "Connection"});
  line.add({.name = "connect-timeout",
            .value = &connect_timeout,
            .limits = config::NumberRange{0.1, 1e6},
            .help = "Seconds to wait for servers that are still starting",
            .group = "Connection"});
  line.add(job, config::kWork);
  line.add({.name = "save",
            .value = &save,
            .help = "File that takes the weights this worker ends with (.safetensors or .pt)"});
  line.add(
      {.name = "slow-down",
       .value = &slow_down,
       .limits = config::NumberRange{1, 1000},
       .help =
           "Take so many times as long for every step, to try a strategy (default: as --slow-worker of the "
           "configuration has it, or 1)"});
  line.add({.name = "json", .value = &json, .help = "Print the result as one JSON object"});
  if (!line.parse(arguments)) return kSuccess;
  job.validate_model();
  check_device(job.device);
  if (!save.empty() && !std::filesystem::is_directory(std::filesystem::absolute(save).parent_path()))
    throw UserError(fmt::format("--save {}: there is no such folder", save.string()));
  if (!save.empty()) checkpoint::check_model_file(save);

  Interrupts interrupts;
  const auto token = cluster::find_token(job.token_file);
  training::configure_torch(static_cast<int>(job.worker_threads()));
  const auto dataset = data::load(dataset_options(job));
  const auto model = training::make_network(network_options(job), dataset.train->shape(), job.batch_size);
  const auto layout = models::layout_of(*model);
  std::vector<float> flat(layout.size());
  models::copy_parameters_out(*model, layout, flat);

  // Asked to end, a worker finishes its step and says good-bye; where it only waits, or is asked twice, it
  // ends at once.
  std::atomic<bool> stop = false, training = false;
  std::jthread watch([&](const std::stop_token& ending) {
    while (!ending.stop_requested()) {
      if (const int asked = interrupts.count(); asked > 0) {
        stop = true;
        if (asked > 1 || !training) end_at_once(json);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });

  client::LinkOptions link;
  link.servers = client::split_addresses(servers);
  link.token = token;
  link.index = rank;
  link.connect_timeout = from_seconds(connect_timeout);
  auto joined = client::WorkerClient::join(
      link, client::make_connector(client::parse_transport(job.transport)), layout, flat,
      {models::buffer_layout_of(*model), {dataset.train->count(), job.seed, job.batch_size}});
  if (!joined)
    throw Failure(joined.status().code() == StatusCode::kRefused ? kWrongUsage : kLost,
                  joined.status().message());
  auto& client = **joined;

  const auto result =
      training::run_worker(client, *model, layout, *dataset.train,
                           {job.batch_size, job.epochs, job.seed, &stop, &training, job.threads_per_loader(),
                            slow_down.value_or(rank ? job.slow_down(*rank) : 1)});
  if (!result) throw Failure(kLost, result.status().message());
  say_unreadable(*dataset.train, "training");
  if (!save.empty()) {
    models::copy_parameters_out(*model, layout, flat);
    checkpoint::write_model(save, layout, flat, models::buffer_layout_of(*model),
                            models::copy_buffers_out(*model));
  }
  const auto test = training::evaluate(*model, *dataset.test, job.threads_per_loader());
  if (json) {
    fmt::print("{}\n", json_line(Json{{"ok", true},
                                      {"rank", client.rank().value},
                                      {"steps", result->steps},
                                      {"samples", result->samples},
                                      {"compute_seconds", result->compute_seconds},
                                      {"communication_seconds", result->communication_seconds},
                                      {"data_seconds", result->data_seconds},
                                      {"test_loss", test.loss},
                                      {"test_accuracy", test.accuracy}}));
  } else {
    say(fmt::format(
        "worker {}: {} steps, {} samples; computed {:.1f} s, waited {:.1f} s; test accuracy {:.2f} %",
        client.rank().value, result->steps, result->samples, result->compute_seconds,
        result->communication_seconds, 100 * test.accuracy));
  }
  return stop ? kInterrupted : kSuccess;
}

}  // namespace capstan::cli
