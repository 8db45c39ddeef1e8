// The end of a supervised job: the last evaluation, the weights, the result.

#include <algorithm>

#include <fmt/format.h>

#include "capstan/base/failure.h"
#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/job/supervisor.h"
#include "capstan/job/warnings.h"
#include "capstan/user_error.h"

namespace capstan::job {

using wire::WorkerState;

TrainResult Supervisor::finish() {
  if (const auto outcome = await_evaluation()) take_evaluation(*outcome);
  auto result = reached();
  if (!stop_ && result.lost_workers == job_.config.workers) {
    const auto cause = await_wrong_input();
    observer_.reset();
    await_processes();
    if (cause) std::rethrow_exception(cause);
    throw Failure(
        kLost, fmt::format("all {} workers are lost after {} updates; see {}/{}-0.log", job_.config.workers,
                           result.reached.steps, result.run_dir, job_.starts_workers ? "worker" : "server"));
  }
  const bool left_early = !result.problem.empty();
  save_weights(result);
  end_processes();
  // The servers have recorded a finished job, because all workers left: they do not count epochs.
  if (left_early && checkpoint::is_finished(record_.path()))
    checkpoint::mark_finished(record_.path(), status_.version, "stopped");
  return result;
}

TrainResult Supervisor::reached() const {
  TrainResult result;
  result.config = job_.config;
  // Workers on other hosts may use another transport than this process.
  result.transport = job_.starts_workers ? observer_->transport() : job_.config.transport;
  result.take(status_, job_.training_samples);
  if (status_.samples > 0) result.train_loss = status_.loss;
  result.run_dir = record_.path().string();
  result.checkpoint = status_.checkpoint.value;
  result.interrupted = (stop_ && !failure_) || is_unsaved_;
  if (stop_ && stop_->workers_ended) result.lost_workers = stop_->lost_before;
  if (job_.resume) result.resumed(*job_.resume, job_.training_samples);
  const bool one_is_done = std::ranges::any_of(
      status_.workers, [&](const auto& row) { return row.steps.value >= job_.budget.segment_steps; });
  if (!stop_ && status_.version.value < job_.budget.total && !one_is_done)
    result.problem =
        fmt::format("all workers left after {} of {} updates", status_.version.value, job_.budget.total);
  return result;
}

void Supervisor::save_weights(TrainResult& result) {
  auto last = observer_->pull(job_.layout, status_.version, job_.buffer_layout);
  if (!last) server_lost(last.status());
  observer_.reset();
  try {
    record_.write_weights(job_.layout, last->weights, job_.buffer_layout, last->buffers);
  } catch (const UserError& error) {
    result.weights_saved = false;
    result.problem = error.what();
  }
  if (!failure_) evaluate_last(result, std::move(*last));
}

void Supervisor::evaluate_last(TrainResult& result, client::Observer::Snapshot snapshot) {
  evaluation_.start(snapshot.version, status_.seconds, std::move(snapshot.weights),
                    std::move(snapshot.buffers));
  const auto outcome = await_evaluation();
  take_evaluation(*outcome);
  if (outcome->test) {
    result.test = *outcome->test;
    return;
  }
  result.test = metrics::Evaluation::unknown(job_.metrics);
  if (!outcome->error)
    result.interrupted = true;
  else if (result.problem.empty())
    result.problem = "the last evaluation failed: " + outcome->reason();
}

// A new stop request cancels the evaluation.
std::optional<BackgroundEvaluation::Outcome> Supervisor::await_evaluation() {
  while (evaluation_.busy()) {
    if (auto outcome = evaluation_.poll(kPollInterval)) return outcome;
    if (is_asked_again()) evaluation_.cancel();
  }
  return {};
}

// The leader then marks the run as finished, and ends.
void Supervisor::await_processes() {
  for (std::size_t rank = 0; rank < status_.workers.size(); ++rank) {
    if (status_.workers[rank].state == WorkerState::kLost) processes_.kill_worker(rank);
  }
  processes_.wait(SteadyClock::now() + kExitTimeout);
}

void Supervisor::end_processes() {
  await_processes();
  evaluator_.finish();
  for (std::size_t rank = 0; job_.starts_workers && rank < status_.workers.size(); ++rank) {
    for (const auto& warning : warnings_in(record_.path() / fmt::format("worker-{}.log", rank)))
      environment_.events.message(fmt::format("worker {}: {}", rank, warning));
  }
  for (const auto& ended : processes_.reap()) {
    if (ended.exit.code == 0 || (!ended.is_server && (workers_.is_lost(ended.index) || stop_))) continue;
    environment_.events.message(fmt::format("{} {} failed at the end of the job ({})",
                                            ended.is_server ? "server" : "worker", ended.index,
                                            ended.exit.text()));
  }
}

}  // namespace capstan::job
