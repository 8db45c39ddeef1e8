#include <cmath>

#include <fmt/format.h>
#include <torch/version.h>
#include <ucp/api/ucp_version.h>
#include <unistd.h>

#include "capstan/base/cores.h"
#include "capstan/base/json.h"
#include "capstan/base/user_error.h"
#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/device.h"
#include "capstan/cli/job_dataset.h"
#include "capstan/cli/network.h"
#include "capstan/cli/output.h"
#include "capstan/cli/resume.h"
#include "capstan/cli/strategy_help.h"
#include "capstan/cli/train_job.h"
#include "capstan/cli/train_team.h"
#include "capstan/client/connector.h"
#include "capstan/job/estimate.h"
#include "capstan/launch/child.h"
#include "capstan/models/arena.h"
#include "capstan/models/buffers.h"
#include "capstan/optimizer/optimizer.h"
#include "capstan/strategy/strategy.h"
#include "capstan/training/threads.h"

namespace capstan::cli {
namespace {

// A place in a job that is started by hand, rank by rank.
struct ByHand {
  std::optional<std::uint32_t> rank;
  std::uint32_t world_size = 0;
  std::string master_addr = "127.0.0.1";
  std::uint16_t master_port = 29500;

  std::string master() const { return fmt::format("{}:{}", master_addr, master_port); }
};

std::string versions() {
  return Json{{"capstan", CAPSTAN_VERSION},
              {"libtorch", TORCH_VERSION},
              {"ucx", fmt::format("{}.{}", UCP_API_MAJOR, UCP_API_MINOR)},
              {"compiler", __VERSION__},
              {"protocol", wire::kProtocol},
              {"cores", usable_cores()}}
             .dump(2) +
         "\n";
}

[[noreturn]] void become(const std::string& name, std::vector<std::string> arguments) {
  const auto program = launch::program(name);
  arguments.insert(arguments.begin(), program);
  std::vector<char*> argv;
  for (auto& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  throw UserError(fmt::format("{}: the installation is incomplete", program));
}

// Every rank but 0 is a worker.
[[noreturn]] void become_worker(const config::JobConfig& config, const ByHand& place, bool json) {
  auto arguments = config::arguments(config.resolved(), config::kWork);
  arguments.insert(arguments.begin(),
                   {"work", "--server=" + place.master(), fmt::format("--rank={}", *place.rank - 1),
                    fmt::format("--connect-timeout={}", config.join_timeout)});
  if (json) arguments.emplace_back("--json");
  become("capstan-torch", arguments);
}

// A checkpoint of another network or another training set is not gone on from.
void check_resumed(const Resumed& resumed, const FlatLayout& layout, const data::Dataset& dataset,
                   const config::JobConfig& config) {
  const auto& from = resumed.from.manifest;
  const auto folder = resumed.from.folder.string();
  if (const auto difference = layout.difference(FlatLayout(from.parameters)); !difference.empty())
    throw UserError(fmt::format("{} is of another network than {}: {}", folder, config.network, difference));
  const auto kind = config.optimizer.options().kind;
  if (from.state != job::state_names(config))
    throw UserError(fmt::format("{} was made with {}: its state is of no use to {} as it is set here", folder,
                                from.optimizer, optimizer::name(kind)));
  if (from.samples > 0 && (from.samples != dataset.train->count() || from.seed != config.seed))
    throw UserError(fmt::format("{} was trained on {} samples with seed {}; here are {} samples and seed {}",
                                folder, from.samples, from.seed, dataset.train->count(), config.seed));
}

void check(config::JobConfig& config, ByHand& place) {
  if (place.rank) {
    if (place.world_size < 2)
      throw UserError("--rank needs --world-size of at least 2: one server and one worker");
    if (*place.rank >= place.world_size) {
      throw UserError(fmt::format("--rank {} is outside --world-size {}: ranks go from 0 to {}", *place.rank,
                                  place.world_size, place.world_size - 1));
    }
    if (config.servers != 1)
      throw UserError("--rank starts jobs of one server: use capstan serve and capstan work for more");
    if (!config.has_servers())
      throw UserError(fmt::format(
          "--rank starts a server and workers, and strategy {} has none: leave one out", config.strategy));
    config.workers = place.world_size - 1;
    config.listen = place.master();
  } else if (place.world_size > 0) {
    throw UserError("--world-size says nothing without --rank: give both, or --workers");
  }
  (void)client::parse_address(config.listen);
  config.validate();
  check_device(config.device);
}

}  // namespace

int run_train(const Arguments& arguments) {
  if (asks_for_strategies(arguments)) return kSuccess;
  config::JobConfig config;
  ByHand place;
  bool json = false, dry_run = false;
  std::string team_address;
  std::uint32_t team_rank = 0;
  CommandLine line("train",
                   "Trains a network with a parameter server on this machine: starts servers and\n"
                   "workers, shows progress, evaluates each epoch, and leaves a run folder.\n\n"
                   "  capstan train                       LeNet learns digits: 1 server, 2 workers\n"
                   "  capstan train --dataset mnist --data-dir mnist --epochs 3 --strategy async\n"
                   "  capstan train --strategy single     the same without a server\n"
                   "  capstan train --rank R --world-size N --master-addr HOST --master-port PORT\n"
                   "                                      one place of a job on many hosts\n");
  line.add(config, config::kTrain);
  line.describe("token-file",
                "File (mode 0600) with the job's token (default: a fresh one; with --rank: $CAPSTAN_TOKEN)");
  line.add({.name = "team", .value = &team_address, .hidden = true});
  line.add({.name = "team-rank", .value = &team_rank, .hidden = true});
  line.add({.name = "json",
            .value = &json,
            .help = "Print the result as one JSON object on standard output",
            .group = "Output"});
  line.add({.name = "dry-run",
            .value = &dry_run,
            .help = "Print the resolved configuration and an estimate, then end",
            .group = "Output"});
  line.add({.name = "rank",
            .value = &place.rank,
            .limits = config::WholeRange{0, 4096},
            .help = "This process's place in a job started by hand: 0 serves and leaves the run folder, the "
                    "others work",
            .group = "By hand"});
  line.add({.name = "world-size",
            .value = &place.world_size,
            .limits = config::WholeRange{2, 4097},
            .help = "Processes of that job",
            .group = "By hand"});
  line.add({.name = "master-addr",
            .value = &place.master_addr,
            .help = "Where rank 0 listens",
            .group = "By hand"});
  line.add({.name = "master-port",
            .value = &place.master_port,
            .limits = config::WholeRange{1, 65535},
            .help = "Its port",
            .group = "By hand"});
  if (!line.parse(arguments)) return kSuccess;
  if (config.has_servers()) config.optimizer.prefer(config.plan());
  check(config, place);

  const bool by_hand = place.rank.has_value();
  if (by_hand && *place.rank > 0 && !dry_run) become_worker(config, place, json);
  const auto token = (by_hand && !dry_run) || !config.token_file.empty()
                         ? cluster::find_token(config.token_file)
                         : cluster::Token::generate();

  Interrupts interrupts;
  auto dataset = data::load(dataset_options(config));
  auto model = training::make_network(network_options(config), dataset.train->shape(), config.batch_size);
  const auto layout = models::layout_of(*model);
  if (config.has_servers()) (void)config.plan().groups_of(layout);  // groups without tensors end here
  const auto buffer_layout = models::buffer_layout_of(*model);
  std::vector<std::string> complaints;
  auto resumed = find_resume(config, complaints);
  for (const auto& complaint : complaints)
    say(fmt::format("capstan: {}: taking the checkpoint before it", complaint));
  if (resumed) check_resumed(*resumed, layout, dataset, config);
  if (resumed && config.train_dir.empty()) config.train_dir = resumed->run;
  // Nothing is written into another run than the one that goes on, or that `auto` found without a checkpoint
  // and without weights: that one ended before it came to anything, and begins again.
  std::error_code none;
  const bool same_run = resumed
                            ? std::filesystem::equivalent(config.train_dir, resumed->run, none)
                            : config.resume == "auto" &&
                                  !std::filesystem::exists(config.train_dir / "weights.safetensors", none);
  const auto plan =
      job::budget_steps(config, dataset.train->count(), resumed ? &resumed->from.manifest : nullptr);
  (void)config.optimizer.schedule(plan.total);  // wrong schedules end here
  if (dry_run) {
    const job::DryRun shown{config,
                            layout.parameters(),
                            dataset.train->count(),
                            dataset.test->count(),
                            job::budget_steps(config, dataset.train->count(), nullptr),
                            job::estimate(config, layout.bytes())};
    fmt::print("{}", json ? shown.json() + "\n" : shown.text());
    return kSuccess;
  }
  if (team_rank > 0) {
    training::configure_torch(static_cast<int>(config.worker_threads()));
    return follow_in_team(config, team_address, team_rank, dataset, plan,
                          resumed ? std::optional(resumed->from) : std::nullopt);
  }
  const auto toml = config.to_toml();  // as the user has it: another time the job may run on many hosts
  if (config.transport == "auto" && config.has_servers() && !by_hand) config.transport = "local";

  training::configure_torch(static_cast<int>(config.has_servers() ? 1 : config.worker_threads()));
  TrainContext context{config,
                       std::move(dataset),
                       std::move(model),
                       layout,
                       buffer_layout,
                       job::RunRecord(metrics::RunFolder(
                           config.train_dir, fmt::format("{}-{}", config.network, config.dataset), same_run)),
                       plan,
                       resumed ? std::optional(resumed->from) : std::nullopt,
                       interrupts,
                       token,
                       !by_hand,
                       config.evaluator};
  context.folder.write_configuration(toml);
  context.folder.write_versions(versions());
  if (resumed) {
    say(fmt::format("going on from step {}: {}", plan.start.value, resumed->from.folder.string()));
    if (plan.total <= plan.start.value)
      say(fmt::format("nothing is left to train: it has {} updates, and --epochs {}{} ask for no more",
                      plan.start.value, config.epochs, config.max_steps > 0 ? " with --max-steps" : ""));
    context.folder.resumed(plan.start);
  }
  const auto result = config.is_single() ? train_alone(context)
                      : config.is_team() ? train_in_team(context)
                                         : train_with_servers(context);
  say_unreadable(*context.dataset.test, "test");
  context.folder.result(result);
  if (json) {
    fmt::print("{}\n", result.json());
  } else {
    fmt::print("{}", result.summary());
  }
  if (!context.folder.is_complete())
    say(fmt::format("capstan: {}/metrics.jsonl is not complete: is the disk full?", result.run_dir));
  if (result.interrupted)
    say(result.checkpoint == result.reached.steps && result.reached.steps > 0
            ? fmt::format("interrupted: --resume {} goes on", result.run_dir)
            : "interrupted: the weights so far are saved");
  if (!std::isfinite(result.test.loss))
    say("the loss is not a finite number: training has diverged; a smaller --lr may help");
  return result.interrupted ? kInterrupted : kSuccess;
}

}  // namespace capstan::cli
