#include <fmt/format.h>

#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/signals.h"
#include "capstan/cli/terminal_progress.h"
#include "capstan/job/checkpoint_evaluator.h"
#include "capstan/job/resume.h"
#include "capstan/job/stop_watch.h"
#include "capstan/job/task_factory.h"
#include "capstan/training/evaluator.h"
#include "capstan/training/threads.h"
#include "capstan/user_error.h"

namespace capstan::cli {
namespace {

namespace fs = std::filesystem;

struct EvalOptions {
  config::JobConfig job;
  std::uint64_t eval_freq = 0;
  std::uint64_t batch = 0;
  double poll_interval = 1;
  bool once = false;
  bool json = false;
};

// Flags override the configuration that train has written to the run folder. False for --help.
bool parse(EvalOptions& options, const Arguments& arguments, const job::Program& program,
           const fs::path& written) {
  CommandLine line(
      "eval",
      fmt::format("Watches the checkpoints of a run and evaluates each on the test set, until the\n"
                  "run is finished. Writes evaluations.jsonl into the run folder, and maintains the\n"
                  "link checkpoints/best. {1} and dataset are those of the run.\n\n"
                  "  {0} eval --train-dir runs/NAME\n"
                  "  {0} eval --train-dir runs/NAME --once        existing checkpoints only\n{2}",
                  program.name, program.has_own_task() ? "Seed" : "Network",
                  program.has_own_task()
                      ? ""
                      : "  capstan eval --model-dir DIR --network lenet --dataset mnist --eval-freq 50\n"),
      program);
  line.add(options.job, config::kEval);
  auto& train_dir = line.flag("train-dir", &options.job.train_dir, "The run's folder");
  train_dir.required = true;
  train_dir.also = "--model-dir";
  line.read_first(written);
  line.flag("eval-batch-size", &options.batch, "Samples per batch (0: automatic)",
            config::WholeRange{0, 1u << 20});
  line.flag("eval-freq", &options.eval_freq, "Only checkpoints at multiples of N updates (0: all)");
  line.flag("poll-interval", &options.poll_interval,
            "Seconds between checks for new checkpoints, on file systems without notification",
            config::NumberRange{0.01, 3600});
  line.flag("once", &options.once, "Evaluate the existing checkpoints, then end");
  line.flag("json", &options.json, "Print the result as one JSON object");
  return line.parse(arguments);
}

}  // namespace

int run_eval(const Arguments& arguments, const job::Program& program) {
  EvalOptions options;
  if (!parse(options, arguments, program, {})) return kSuccess;
  const auto written = job::configuration_of(options.job.train_dir);
  options = {};
  (void)parse(options, arguments, program, written);
  job::check_device(options.job.device);
  const auto& run = options.job.train_dir;
  if (!fs::is_directory(run)) throw UserError(fmt::format("--train-dir {}: no such folder", run.string()));
  options.job.weights.clear();

  Interrupts interrupts;
  TerminalProgress events({});
  const job::Environment environment{
      .events = events, .stop = interrupts, .program = program, .end_at_once = [&] {
        end_at_once(options.json, program.name);
      }};
  training::configure_torch(static_cast<int>(options.job.worker_threads()));
  std::optional<job::StopWatch> watch(std::in_place, environment, 0, 0);
  const auto task = job::make_test_task(options.job, program);
  watch.reset();
  job::CheckpointEvaluator evaluator(
      {run, options.job.network, task.layout, task.buffer_layout, task.task->metrics(), options.eval_freq,
       options.poll_interval, options.once},
      [&](auto weights, auto buffers) {
        return *training::evaluate(*task.task, task.layout, weights, buffers,
                                   {options.job.threads_per_loader(), options.batch});
      },
      environment);
  evaluator.run();
  fmt::print("{}", options.json ? json_line(evaluator.json()) + "\n" : evaluator.text());
  return evaluator.exit_code();
}

}  // namespace capstan::cli
