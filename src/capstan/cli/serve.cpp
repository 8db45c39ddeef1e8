#include "capstan/job/serve.h"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "capstan/base/text.h"
#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/signals.h"
#include "capstan/cli/terminal_progress.h"
#include "capstan/job/resume.h"
#include "capstan/strategy/listing.h"
#include "capstan/user_error.h"

namespace capstan::cli {
namespace {

// The message of a log line, which may quote a peer.
class PrintableMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& line, const std::tm&, spdlog::memory_buf_t& out) override {
    const auto text = printable({line.payload.data(), line.payload.size()});
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PrintableMessage>();
  }
};

std::shared_ptr<spdlog::logger> make_log(bool verbose) {
  auto log = std::make_shared<spdlog::logger>("server", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  auto lines = std::make_unique<spdlog::pattern_formatter>();
  lines->add_flag<PrintableMessage>('*').set_pattern("%H:%M:%S.%e server: %*");
  log->set_formatter(std::move(lines));
  log->set_level(verbose ? spdlog::level::debug : spdlog::level::warn);
  return log;
}

}  // namespace

int run_serve(const Arguments& arguments, const job::Program& program) {
  if (value_of(arguments, "strategy") == "help") {
    fmt::print("{}", strategy::strategies_text());
    return kSuccess;
  }
  job::ServeOptions options;
  auto& config = options.config;
  bool json = false, verbose = false;
  CommandLine line(
      "serve",
      fmt::format("Runs one parameter server: it holds a shard of the weights, receives gradients\n"
                  "and returns updated weights. Prints \"listening on HOST:PORT\" when workers can join (on "
                  "standard\n"
                  "output; with --json on standard error), and ends when all workers have left.\n\n"
                  "  {0} serve --listen 0.0.0.0:7000 --workers 4 --token-file job.token\n"
                  "  {0} work --server host1:7000 --token-file job.token         (four times)\n\n"
                  "With several servers, the first is the leader; workers list its address first\n"
                  "(all need the token, as above):\n\n"
                  "  {0} serve --listen 0.0.0.0:7000 --workers 4 --servers 2\n"
                  "  {0} serve --listen 0.0.0.0:7001 --leader host1:7000\n"
                  "  {0} work --server host1:7000,host2:7001\n",
                  program.name),
      program);
  line.group("Connection");
  line.flag("leader", &options.leader, "HOST:PORT of the leader; this server is a follower");
  line.add(config, config::kServe);
  line.describe("train-dir", "Run folder for checkpoints (default: none are written)");
  line.group("Optimizer");
  line.flag("total-steps", &options.total_steps,
            "Updates of the whole run (with local steps: steps of a worker), for --lr-schedule cosine");
  line.group("Job");
  line.flag("loss-window", &options.loss_window, "Number of updates over which the reported loss is averaged",
            config::WholeRange{1, 1'000'000});
  line.group("Options");
  line.flag("json", &json, "Print the result as one JSON object");
  line.flag("verbose", &verbose, "Log members that join and leave").also = "-v";
  if (!line.parse(arguments)) return kSuccess;
  if (!config.has_servers())
    throw UserError(fmt::format("strategy {0} has no server: use {1} train --strategy {0}", config.strategy,
                                program.name));

  Interrupts interrupts;
  options.log = make_log(verbose);
  options.token = cluster::find_token(config.token_file);
  std::vector<std::string> complaints;
  if (auto resumed = job::find_resume(config, complaints)) options.resume = std::move(resumed->from);
  for (const auto& complaint : complaints) options.log->warn(complaint);

  TerminalProgress events({});
  const auto result = job::serve(options,
                                 {.events = events,
                                  .stop = interrupts,
                                  .program = program,
                                  .end_at_once = [&] { end_at_once(json, program.name); }},
                                 [&](const std::string& address) {
                                   if (json) return say("listening on " + address);
                                   fmt::print("listening on {}\n", address);
                                   std::fflush(stdout);
                                 });
  if (!result.leads) return result.interrupted ? kInterrupted : kSuccess;
  if (json)
    fmt::print("{}\n", result.json());
  else
    say(result.text());
  return result.interrupted ? kInterrupted : kSuccess;
}

}  // namespace capstan::cli
