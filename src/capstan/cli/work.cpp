#include "capstan/cli/work.h"

#include <fmt/format.h>

#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/output.h"
#include "capstan/cli/signals.h"
#include "capstan/cli/terminal_progress.h"
#include "capstan/client/connector.h"
#include "capstan/job/task_factory.h"
#include "capstan/training/threads.h"

namespace capstan::cli {

int run_worker(job::WorkOptions options, bool json) {
  job::check_device(options.config.device);
  Interrupts interrupts;
  TerminalProgress events({});
  options.token = cluster::find_token(options.config.token_file);
  options.end_at_once = [=] { end_at_once(json); };
  training::configure_torch(static_cast<int>(options.config.worker_threads()));
  const auto result = job::work(options, {events, interrupts});
  if (json)
    fmt::print("{}\n", result.json());
  else
    say(result.text());
  return result.interrupted ? kInterrupted : kSuccess;
}

int run_work(const Arguments& arguments) {
  job::WorkOptions options;
  auto& config = options.config;
  std::string servers;
  bool json = false;
  CommandLine line("work",
                   "One worker: computes gradients on its part of the data for the servers of a job.\n\n"
                   "  capstan work --server thathost:7000 --token-file job.token\n\n"
                   "What is trained comes from the server; a flag that contradicts it is refused.\n");
  line.add({.name = "server",
            .value = &servers,
            .help = "HOST:PORT of the job's server; of several, with commas, the first leads",
            .group = "Connection",
            .required = true});
  line.add({.name = "rank",
            .value = &options.rank,
            .limits = config::WholeRange{0, 4095},
            .help = "Which worker to be, from 0 (default: the first place that is free)",
            .group = "Connection"});
  line.add({.name = "connect-timeout",
            .value = &options.connect_timeout,
            .limits = config::NumberRange{0.1, 1e6},
            .help = "Seconds to wait for servers that are still starting",
            .group = "Connection"});
  line.add(config, config::kWork);
  line.add({.name = "save",
            .value = &options.save,
            .help = "File that takes the weights this worker ends with (.safetensors or .pt)"});
  line.add(
      {.name = "slow-down",
       .value = &options.slow_down,
       .limits = config::NumberRange{1, 1000},
       .help =
           "Take so many times as long for every step, to try a strategy (default: as --slow-worker of the "
           "configuration has it, or 1)"});
  line.add({.name = "json", .value = &json, .help = "Print the result as one JSON object"});
  if (!line.parse(arguments)) return kSuccess;
  config.validate_model();
  options.servers = client::split_addresses(servers);
  return run_worker(std::move(options), json);
}

}  // namespace capstan::cli
