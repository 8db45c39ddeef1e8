#include <atomic>

#include <fmt/format.h>

#include "capstan/checkpoint/model_file.h"
#include "capstan/cli/alone_checkpoints.h"
#include "capstan/cli/evaluator_child.h"
#include "capstan/cli/job_dataset.h"
#include "capstan/cli/network.h"
#include "capstan/cli/progress.h"
#include "capstan/cli/train_job.h"
#include "capstan/data/partition.h"
#include "capstan/models/buffers.h"
#include "capstan/training/evaluate.h"
#include "capstan/training/single.h"

namespace capstan::cli {

job::TrainResult train_alone(TrainContext& context, const training::Team& team) {
  const auto& config = context.config;
  const auto& plan = context.plan;
  const optimizer::Optimizer rule(config.optimizer.options(), config.optimizer.schedule(plan.total));
  AloneCheckpoints checkpoints(context, rule, team.workers);
  Progress progress(plan.total, config.log_interval);
  const auto uneven =
      data::describe_uneven({context.dataset.train->count(), team.workers, config.batch_size});
  if (!uneven.empty()) progress.say(uneven);
  EvaluatorChild evaluator(context.evaluator, context.folder.path());
  const auto say_line = [&](const std::string& line) { progress.say(line); };
  std::atomic<bool> stop = false;
  wire::StatusReport status;
  status.workers.resize(team.workers);
  for (auto& row : status.workers) row.state = wire::WorkerState::kLive;
  double epoch_loss = 0, epoch_samples = 0, last_epoch_loss = 0;

  const auto test_now = [&](models::Model& model, std::uint64_t step) {
    const auto test = training::evaluate(model, *context.dataset.test, config.threads_per_loader());
    record_evaluation(context.folder, progress, {step}, plan, test, status.seconds);
    return test;
  };

  training::SingleCallbacks callbacks;
  callbacks.stop = &stop;
  callbacks.on_step = [&](const training::SingleStep& step) {
    if (context.interrupts.count() > 0) stop = true;
    status.version = {step.step};
    status.seconds += step.seconds;
    status.samples += step.samples;
    for (std::size_t rank = 0; rank < step.parts.size(); ++rank) {
      const auto& part = step.parts[rank];
      auto& row = status.workers[rank];
      row.steps = {step.step};
      row.loss = part.loss;
      row.samples += static_cast<std::uint64_t>(part.samples);
      row.compute_seconds += part.compute_seconds;
      row.wait_seconds += part.wait_seconds;
      row.data_seconds += part.data_seconds;
      ++row.pushes;
    }
    epoch_loss += step.loss * static_cast<double>(step.samples);
    epoch_samples += static_cast<double>(step.samples);
    if (progress.due()) progress.show(status);
  };
  callbacks.on_update = [&](const training::SingleState& state) {
    const auto before = checkpoints.newest();
    checkpoints.updated(state);
    evaluator.look(say_line);
    if (checkpoints.newest() != before)
      progress.say(fmt::format("checkpoint at step {}", checkpoints.newest()));
  };
  callbacks.on_end = [&](const training::SingleState& state) { checkpoints.ended(state); };
  training::Evaluation last;
  callbacks.on_epoch = [&](std::uint64_t, std::span<const float>, models::Model& model) {
    last = test_now(model, status.version.value);
    last_epoch_loss = epoch_samples > 0 ? epoch_loss / epoch_samples : 0;
    epoch_loss = epoch_samples = 0;
  };
  const auto trained =
      training::train_single({network_options(config), config.batch_size, config.epochs, config.max_steps,
                              config.seed, config.optimizer.options(), config.optimizer.schedule(plan.total),
                              config.threads_per_loader(), single_start(context.resume, rule), team},
                             context.dataset, callbacks);
  if (!checkpoints.error().empty()) progress.say("a checkpoint could not be written: " + checkpoints.error());
  evaluator.finish(say_line, [&] { return context.interrupts.count() > (trained.stopped ? 1 : 0); });
  say_unreadable(*context.dataset.train, "training");
  job::TrainResult result;
  result.interrupted = trained.stopped;
  result.config = config;
  result.take(status, context.dataset.train->count());
  result.train_loss = epoch_samples > 0 ? epoch_loss / epoch_samples : last_epoch_loss;
  result.test = epoch_samples > 0 || last.samples == 0 ? test_now(*trained.model, trained.steps) : last;
  result.run_dir = context.folder.path().string();
  if (team.sum) {
    result.transport = "gloo";
    // By a ring every element goes round twice; what is a worker's own at the end of a round stays there.
    const auto steps = trained.steps - plan.start.value;
    result.bytes_pushed = result.bytes_pulled = steps * context.layout.bytes() * 2 * (team.workers - 1);
  }
  result.checkpoint = checkpoints.newest();
  if (context.resume) result.resumed(context.resume->manifest, context.dataset.train->count());
  checkpoint::write_model(context.folder.path() / "weights.safetensors", context.layout, trained.weights,
                          context.buffer_layout, models::copy_buffers_out(*trained.model));
  return result;
}

}  // namespace capstan::cli
