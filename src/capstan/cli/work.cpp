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
                   "Runs one worker: it computes gradients on its part of the data and pushes them\n"
                   "to the servers of a job.\n\n"
                   "  capstan work --server host1:7000 --token-file job.token\n\n"
                   "The server provides the job's configuration; a worker whose flags contradict it\n"
                   "is refused.\n");
  line.add({.name = "server",
            .value = &servers,
            .help = "HOST:PORT of the job's server; for several servers a list, the leader first: A:1,B:2",
            .group = "Connection",
            .required = true});
  line.add({.name = "rank",
            .value = &options.rank,
            .limits = config::WholeRange{0, 4095},
            .help = "Rank of this worker, from 0 (default: the lowest free rank)",
            .group = "Connection"});
  line.add({.name = "connect-timeout",
            .value = &options.connect_timeout,
            .limits = config::NumberRange{0.1, 1e6},
            .help = "Seconds to wait for servers to start",
            .group = "Connection"});
  line.add(config, config::kWork);
  line.add({.name = "save",
            .value = &options.save,
            .help = "File for this worker's final weights (.safetensors or .pt)"});
  line.add({.name = "slow-down",
            .value = &options.slow_down,
            .limits = config::NumberRange{1, 1000},
            .help =
                "Factor on the duration of every step, to test a strategy (default: from the configuration's "
                "slow-worker, or 1)"});
  line.add({.name = "json", .value = &json, .help = "Print the result as one JSON object"});
  if (!line.parse(arguments)) return kSuccess;
  config.validate_model();
  options.servers = client::split_addresses(servers);
  return run_worker(std::move(options), json);
}

}  // namespace capstan::cli
