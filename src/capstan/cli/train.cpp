#include "capstan/job/train.h"

#include <fmt/format.h>

#include "capstan/base/text.h"
#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/signals.h"
#include "capstan/cli/terminal_progress.h"
#include "capstan/client/connector.h"
#include "capstan/job/allreduce_group.h"
#include "capstan/job/ranks.h"
#include "capstan/job/resume.h"
#include "capstan/job/work.h"
#include "capstan/strategy/listing.h"
#include "capstan/training/threads.h"
#include "capstan/user_error.h"

namespace capstan::cli {
namespace {

struct TrainFlags {
  config::JobConfig config;
  job::Ranks ranks;
  bool json = false, dry_run = false;
  std::string group_address;  // of rank 0, if this process is another rank of an allreduce group
  std::uint32_t group_rank = 0;
};

// Every rank but 0 is a worker.
int work(const TrainFlags& flags, const job::Program& program) {
  job::WorkOptions options;
  options.config = flags.config;
  options.servers = {flags.ranks.master()};
  options.rank = flags.ranks.worker();
  options.connect_timeout = flags.config.join_timeout;
  return run_worker(std::move(options), flags.json, program);
}

void add_own_flags(CommandLine& line, TrainFlags& flags) {
  line.flag("group-address", &flags.group_address, "").hidden = true;
  line.flag("group-rank", &flags.group_rank, "").hidden = true;
  line.group("Output");
  line.flag("json", &flags.json, "Print the result as one JSON object on standard output");
  line.flag("dry-run", &flags.dry_run, "Print the resolved configuration and an estimate, then end");
  line.group("Manual start");
  line.flag("rank", &flags.ranks.rank,
            "Rank of this process, if you start each process of a job: 0 runs the server and writes "
            "the run folder, all others are workers",
            config::WholeRange{0, 4096});
  line.flag("world-size", &flags.ranks.world_size, "Number of processes", config::WholeRange{2, 4097});
  line.flag("master-addr", &flags.ranks.master_addr, "Host of rank 0");
  line.flag("master-port", &flags.ranks.master_port, "Port of rank 0", config::WholeRange{1, 65535});
}

std::string description(const job::Program& program) {
  std::string out =
      "Trains a network with a parameter server on this machine: starts servers and\n"
      "workers, shows progress, evaluates each epoch, and writes a run folder.\n\n";
  const auto example = [&](const std::string& arguments, const std::string& meaning) {
    out += fmt::format("  {:<36}{}\n", program.name + " train" + arguments, meaning);
  };
  example("", program.has_own_task() ? "1 server, 2 workers" : "LeNet on digits: 1 server, 2 workers");
  if (!program.has_own_task()) {
    example(" --dataset mnist --data-dir mnist --epochs 3 --strategy async", "");
    example(" --network net.pt --dataset csv:houses.csv:target=price", "");
    example(" --task char-lm", "a language model");
  }
  example(" --strategy single", "without a server");
  example(" --resume RUN", "resumes with the run's configuration");
  example(" --rank R --world-size N --master-addr HOST --master-port PORT", "");
  return out + fmt::format("{:<38}one process of a job on several hosts\n", "");
}

// Flags override the configuration of a resumed run, if there is one. False for --help.
bool parse(TrainFlags& flags, const Arguments& arguments, const job::Program& program,
           const std::filesystem::path& resumed) {
  CommandLine line("train", description(program), program);
  line.add(flags.config, config::kTrain);
  line.describe("token-file",
                "File (mode 0600) with the job's token (default: a new token; with --rank: $CAPSTAN_TOKEN)");
  add_own_flags(line, flags);
  line.read_first(resumed);
  return line.parse(arguments);
}

// The run that --resume names; for `auto` without --train-dir, the run that find_same_job() finds.
std::filesystem::path resumed_run(const config::JobConfig& config) {
  if (config.resume != "auto") return config.resume;
  if (!config.train_dir.empty()) return config.train_dir;
  const auto found = job::find_same_job("runs", config);
  if (!found.run && !found.why_not.empty())
    say("--resume auto: no run in runs/ matches this job; starting a new run; " + found.why_not);
  return found.run.value_or("");
}

// Reads the flags and the configuration of the resumed run.
bool parse(TrainFlags& flags, const Arguments& arguments, const job::Program& program) {
  if (!parse(flags, arguments, program, std::filesystem::path())) return false;
  const auto run = resumed_run(flags.config);
  if (run.empty()) return true;
  const bool is_auto = flags.config.resume == "auto", is_found = is_auto && flags.config.train_dir.empty();
  const bool is_complete = is_auto || !value_of(arguments, "config").empty();  // without the run's file
  flags = TrainFlags();
  (void)parse(flags, arguments, program,
              is_complete ? job::configuration_of(run) : job::configuration_to_resume(run));
  if (is_found) flags.config.resume = run.string();
  return true;
}

int report(const job::TrainResult& result, const TrainFlags& flags, const job::Program& program) {
  fmt::print("{}", flags.json ? result.json() + "\n" : result.summary());
  if (result.interrupted)
    say(result.checkpoint == result.reached.steps && result.reached.steps > 0
            ? fmt::format(
                  "interrupted; to resume: {}",
                  job::resume_command(program.path, result.run_dir, flags.ranks, flags.config.token_file))
            : "interrupted; the current weights are saved");
  if (!result.problem.empty()) say(program.name + ": " + printable(result.problem));
  if (result.interrupted) return kInterrupted;
  return result.problem.empty() ? kSuccess : kFailed;
}

}  // namespace

int run_train(const Arguments& arguments, const job::Program& program) {
  if (value_of(arguments, "strategy") == "help") {
    fmt::print("{}", strategy::strategies_text());
    return kSuccess;
  }
  TrainFlags flags;
  if (!parse(flags, arguments, program)) return kSuccess;
  auto& config = flags.config;
  flags.ranks.apply_to(config);
  if (config.has_servers()) config.optimizer.prefer(config.strategy_spec());
  (void)client::parse_address(config.listen);
  config.validate();
  job::check_device(config.device);

  const bool by_hand = flags.ranks.rank.has_value();
  if (flags.ranks.is_worker() && !flags.dry_run) return work(flags, program);
  const auto token = (by_hand && !flags.dry_run) || !config.token_file.empty()
                         ? cluster::find_token(config.token_file)
                         : cluster::Token::generate();

  Interrupts interrupts;
  const auto style = TerminalProgress::style_of_errors();
  TerminalProgress events(style);
  const job::Environment environment{
      .events = events, .stop = interrupts, .program = program, .end_at_once = [&] {
        end_at_once(flags.json, program.name);
      }};
  auto prepared = job::prepare(config, environment);
  if (flags.dry_run) {
    const auto shown = job::dry_run(prepared);
    fmt::print("{}", flags.json ? shown.json() + "\n" : shown.text());
    return kSuccess;
  }
  if (flags.group_rank > 0) {
    training::configure_torch(static_cast<int>(config.worker_threads()));
    job::follow_allreduce(prepared, flags.group_address, flags.group_rank);
    return kSuccess;
  }
  const job::TrainOptions options{
      token, !by_hand, {config.evaluator, progress_interval(config.log_interval, style)}};
  const auto result = job::train(std::move(prepared), options, environment);
  events.finish();
  return report(result, flags, program);
}

}  // namespace capstan::cli
