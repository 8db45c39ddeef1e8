#include "capstan/job/single_process.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "capstan/data/partition.h"
#include "capstan/job/stop_watch.h"
#include "capstan/job/warnings.h"
#include "capstan/models/buffers.h"
#include "capstan/user_error.h"

namespace capstan::job {

SingleProcess::SingleProcess(PreparedJob& job, Environment environment, RunRecord& record,
                             const RunOptions& options, const training::GroupMember& group)
    : job_(job),
      environment_(environment),
      record_(record),
      group_(group),
      rules_(job.config.optimizer.spec(), job.config.optimizer.schedule(job.budget.total)),
      schedule_(job.budget),
      checkpoints_(job, record.path(), rules_, group.workers),
      evaluator_(options.evaluator, record.path(), environment),
      progress_(job.budget, false, options.progress_interval, environment.now()) {
  status_.workers.resize(group.workers);
  for (auto& row : status_.workers) row.state = wire::WorkerState::kLive;
}

TrainResult SingleProcess::run() {
  const auto& config = job_.config;
  const auto uneven = data::describe_uneven({job_.budget.samples, group_.workers, config.batch_size});
  if (!uneven.empty()) environment_.events.message(uneven);
  stop_ = environment_.stop.requests() > 0;
  training::SingleCallbacks callbacks;
  callbacks.stop = &stop_;
  callbacks.on_step = [this](const auto& step) { stepped(step); };
  callbacks.on_update = [this](const auto& state) { updated(state); };
  callbacks.on_epoch = [this](std::uint64_t, std::span<const float>) { epoch_ended(); };
  std::optional<StopWatch> watch(std::in_place, environment_, 0, 1);  // a step may compute for any time
  callbacks.on_end = [&](const auto& state) {
    watch.reset();
    checkpoints_.ended(state, environment_.stop, failure_ != nullptr);
  };
  auto trained =
      training::train_single({config.batch_size, config.epochs, config.max_steps, config.seed,
                              config.optimizer.spec(), config.optimizer.schedule(job_.budget.total),
                              config.threads_per_loader(), single_start(job_.resume, rules_), group_},
                             *job_.task.task, callbacks);
  if (const auto error = checkpoints_.error(); !error.empty())
    environment_.events.message("a checkpoint could not be written: " + error);
  evaluator_.finish();
  for (const auto& line : job_.task.task->warnings(Split::kTrain))
    environment_.events.message(as_warning(line));
  auto result = result_of(trained);
  if (failure_) std::rethrow_exception(failure_);
  return result;
}

void SingleProcess::stepped(const training::SingleStep& step) {
  if (environment_.stop.requests() > 0) stop_ = true;
  status_.version = {step.step};
  status_.seconds += step.seconds;
  status_.samples += step.samples;
  for (std::size_t rank = 0; rank < step.parts.size(); ++rank) {
    const auto& part = step.parts[rank];
    auto& row = status_.workers[rank];
    row.steps = {step.step};
    row.loss = part.loss;
    row.samples += static_cast<std::uint64_t>(part.samples);
    row.compute_seconds += part.compute_seconds;
    row.wait_seconds += part.wait_seconds;
    row.data_seconds += part.data_seconds;
    ++row.pushes;
  }
  loss_.sum += step.loss * static_cast<double>(step.samples);
  loss_.samples += static_cast<double>(step.samples);
  if (const auto now = environment_.now(); progress_.is_due(now))
    environment_.events.progress(progress_.take(status_, now));
}

void SingleProcess::updated(const training::SingleState& state) {
  const auto before = checkpoints_.newest();
  checkpoints_.updated(state);
  evaluator_.report_log();
  if (checkpoints_.newest() != before)
    environment_.events.message(fmt::format("checkpoint at step {}", checkpoints_.newest()));
}

// After wrong input, such as an image that cannot be read, the last version is saved and the job ends.
void SingleProcess::epoch_ended() {
  try {
    test_ = evaluate();
  } catch (const UserError&) {
    failure_ = std::current_exception();
    stop_ = true;
  }
  loss_ = {0, 0, loss_.mean()};
  if (environment_.stop.requests() > 0) stop_ = true;
}

// Training waits for it. A new stop request cancels it.
std::optional<metrics::Evaluation> SingleProcess::evaluate() {
  const StopWatch watch(environment_, environment_.stop.requests(), 1);
  const auto test = training::evaluate(*job_.task.task, {job_.config.threads_per_loader(), 0, &watch.asked});
  if (!test) return {};
  const auto record = schedule_.record(status_.version, status_.seconds, *test);
  environment_.events.evaluated(record);
  record_.evaluation(record);
  return test;
}

TrainResult SingleProcess::result_of(training::SingleResult& trained) {
  const auto samples = job_.budget.samples;
  const auto& layout = job_.task.layout;
  TrainResult result;
  result.config = job_.config;
  result.interrupted = trained.stopped;
  result.take(status_, samples);
  result.reached.steps = trained.steps;
  result.train_loss = loss_.mean();
  result.run_dir = record_.path().string();
  if (group_.sum) {
    result.transport = "gloo";
    // Ring allreduce: each worker sends 2 (workers - 1) / workers of the model, in every phase of a step.
    const auto steps = trained.steps - job_.budget.start.value;
    const auto phases = std::max<std::size_t>(job_.task.task->phases().size(), 1);
    result.bytes_pushed = result.bytes_pulled = steps * phases * layout.bytes() * 2 * (group_.workers - 1);
  }
  result.checkpoint = checkpoints_.newest();
  if (job_.resume) result.resumed(job_.resume->manifest, samples);
  try {
    record_.write_weights(layout, trained.weights, job_.task.buffer_layout,
                          models::copy_buffers_out(job_.task.task->buffers()));
  } catch (const UserError& error) {
    result.weights_saved = false;
    result.problem = error.what();
  }
  if (!failure_) evaluate_last(result);
  return result;
}

void SingleProcess::evaluate_last(TrainResult& result) {
  status_.version = {result.reached.steps};
  try {
    if (loss_.samples > 0 || !test_) test_ = evaluate();
    if (!test_) result.interrupted = true;
  } catch (const UserError&) {
    failure_ = std::current_exception();
  }
  result.test = test_.value_or(metrics::Evaluation::unknown(job_.task.task->metrics()));
}

}  // namespace capstan::job
