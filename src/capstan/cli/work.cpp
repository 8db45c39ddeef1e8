#include <atomic>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "capstan/base/user_error.h"
#include "capstan/checkpoint/model_file.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/device.h"
#include "capstan/cli/flags.h"
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
  if (json) std::puts(json_line(nlohmann::json{{"ok", false}, {"error", "interrupted"}}).c_str());
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
  double slow_down = 1;
  bool json = false;
  CLI::App app(
      "One worker: computes gradients on its part of the data for the servers of a job.\n\n"
      "  capstan work --server thathost:7000 --dataset digits --token-file job.token\n",
      "work");
  app.add_option("--server", servers,
                 "HOST:PORT of the job's server; of several, with commas, the first leads")
      ->required()
      ->group("Connection");
  app.add_option("--rank", rank, "Which worker to be, from 0 (default: the first place that is free)")
      ->check(whole_number_in(0, 4095))
      ->group("Connection");
  app.add_option("--connect-timeout", connect_timeout, "Seconds to wait for servers that are still starting")
      ->check(number_in(0.1, 1e6))
      ->capture_default_str()
      ->group("Connection");
  add_transport_flags(app, job);
  add_model_flags(app, job);
  app.add_option("--save", save, "File that takes the weights this worker ends with (.safetensors or .pt)");
  app.add_option("--slow-down", slow_down, "Take so many times as long for every step, to try a strategy")
      ->check(number_in(1, 1000))
      ->capture_default_str();
  app.add_flag("--json", json, "Print the result as one JSON object");
  if (!parse_flags(app, arguments)) return kSuccess;
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
  link.servers = CLI::detail::split(servers, ',');
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

  const auto result = training::run_worker(
      client, *model, layout, *dataset.train,
      {job.batch_size, job.epochs, job.seed, &stop, &training, job.threads_per_loader(), slow_down});
  if (!result) throw Failure(kLost, result.status().message());
  say_unreadable(*dataset.train, "training");
  if (!save.empty()) {
    models::copy_parameters_out(*model, layout, flat);
    checkpoint::write_model(save, layout, flat, models::buffer_layout_of(*model),
                            models::copy_buffers_out(*model));
  }
  const auto test = training::evaluate(*model, *dataset.test, job.threads_per_loader());
  if (json) {
    fmt::print("{}\n", json_line(nlohmann::json{{"ok", true},
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
