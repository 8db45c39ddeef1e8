#include "capstan/job/work.h"

#include <fmt/format.h>

#include "capstan/base/cores.h"
#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/signals.h"
#include "capstan/cli/terminal_progress.h"
#include "capstan/client/connector.h"
#include "capstan/job/task_factory.h"
#include "capstan/training/threads.h"

namespace capstan::cli {

int run_worker(job::WorkOptions options, bool json, const job::Program& program) {
  job::check_device(options.config.device);
  Interrupts interrupts;
  TerminalProgress events({});
  options.token = cluster::find_token(options.config.token_file);
  training::configure_torch(static_cast<int>(options.config.worker_threads()));
  const auto result =
      job::work(options, {.events = events, .stop = interrupts, .program = program, .end_at_once = [&] {
                            end_at_once(json, program.name);
                          }});
  if (json)
    fmt::print("{}\n", result.json());
  else
    say(result.text());
  return result.interrupted ? kInterrupted : kSuccess;
}

int run_work(const Arguments& arguments, const job::Program& program) {
  job::WorkOptions options;
  auto& config = options.config;
  std::string servers;
  bool json = false;
  CommandLine line(
      "work",
      fmt::format("Runs one worker: it computes gradients on its part of the data and pushes them\n"
                  "to the servers of a job.\n\n"
                  "  {} work --server host1:7000 --token-file job.token\n\n"
                  "The server provides the job's configuration; a worker whose flags contradict it\n"
                  "is refused.\n",
                  program.name),
      program);
  line.group("Connection");
  line.flag("server", &servers,
            "HOST:PORT of the job's server; for several servers a list, the leader first: A:1,B:2")
      .required = true;
  line.flag("rank", &options.rank, "Rank of this worker, from 0 (default: the lowest free rank)",
            config::WholeRange{0, 4095});
  line.flag("connect-timeout", &options.connect_timeout, "Seconds to wait for servers to start",
            config::NumberRange{0.1, 1e6});
  line.flag("resume", &config.resume, "").hidden = true;  // the servers have the weights
  line.add(config, config::kWork);
  line.describe("threads", "Compute threads (0: all cores; with --workers, cores ÷ workers)");
  if (!program.has_own_task())
    line.describe("loader-threads",
                  "Threads that decode and augment images (0: all cores; with --workers, cores ÷ workers)");
  line.group("Options");
  line.flag("save", &options.save, "File for this worker's final weights (.safetensors or .pt)");
  line.flag("slow-down", &options.slow_down,
            "Factor on the duration of every step, to test a strategy (default: from the configuration's "
            "slow-worker, or 1)",
            config::NumberRange{1, 1000});
  line.flag("json", &json, "Print the result as one JSON object");
  if (!line.parse(arguments)) return kSuccess;
  config.validate_model();
  // The job's workers need not share this host.
  if (!config.given.contains("workers")) {
    if (config.threads == 0) config.threads = usable_cores();
    if (config.loader_threads == 0) config.loader_threads = usable_cores();
  }
  options.servers = client::split_addresses(servers);
  return run_worker(std::move(options), json, program);
}

}  // namespace capstan::cli
