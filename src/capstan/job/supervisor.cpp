#include "capstan/job/supervisor.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "capstan/base/failure.h"
#include "capstan/data/partition.h"
#include "capstan/job/warnings.h"
#include "capstan/user_error.h"

namespace capstan::job {
namespace {

using wire::WorkerState;

constexpr auto kStepTimeout = std::chrono::seconds(5);   // for the current step, after a stop request
constexpr auto kCauseTimeout = std::chrono::seconds(1);  // for lost workers to say why

bool uses_local_steps(const config::JobConfig& config) {
  return config.strategy_spec().first->local_steps().uses_local_steps();
}

bool is_wrong_input(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const UserError&) {
    return true;
  } catch (...) {
  }
  return false;
}

}  // namespace

Supervisor::Supervisor(SupervisedJob job, Environment environment, RunRecord& record,
                       launch::Processes& processes, std::unique_ptr<client::Observer> observer,
                       Evaluate evaluate, EvaluatorProcess& evaluator)
    : job_(std::move(job)),
      environment_(environment),
      record_(record),
      processes_(processes),
      observer_(std::move(observer)),
      evaluator_(evaluator),
      schedule_(job_.budget),
      evaluation_(std::move(evaluate)),
      progress_(job_.budget, uses_local_steps(job_.config), job_.progress_interval, environment_.now()),
      workers_(job_.config.workers, job_.starts_workers, environment_.events),
      reported_{job_.budget.start, job_.budget.start, {}} {}

TrainResult Supervisor::run() {
  announce();
  request_evaluation();
  for (poll(); !status_.finished; poll()) {
    handle_stop();
    if (auto lost = observer_->poll(SteadyClock::now() + kPollInterval); !lost.is_ok()) server_lost(lost);
  }
  await_checkpoint();
  auto result = finish();
  if (failure_) std::rethrow_exception(failure_);
  return result;
}

void Supervisor::announce() {
  const auto uneven =
      data::describe_uneven({job_.training_samples, job_.config.workers, job_.config.batch_size});
  if (!uneven.empty()) environment_.events.message(uneven);
}

void Supervisor::poll() {
  try {
    check_processes();
  } catch (const UserError&) {
    if (failure_ || !status_.started) throw;
    fail(std::current_exception(), "a worker failed");
  }
  auto status = observer_->status();
  if (!status) server_lost(status.status());
  status_ = std::move(*status);
  workers_.update(status_);
  check_checkpoints();
  evaluator_.report_log();
  check_evaluation();
  const auto now = environment_.now();
  if (!status_.started || !progress_.is_due(now)) return;
  environment_.events.progress(progress_.take(status_, now));
  record_.progress(status_);
}

// Killed processes first: they are the cause, and others end because of them.
void Supervisor::check_processes() {
  auto list = processes_.reap();
  std::ranges::stable_sort(list, std::greater(), [](const auto& e) { return e.exit.signal; });
  for (const auto& ended : list) process_ended(ended);
}

void Supervisor::process_ended(const launch::Processes::Ended& ended) {
  const auto words = without_prefix(ended.last_log_line, environment_.program.name);
  if (ended.is_server) {
    throw Failure(kLost, fmt::format("server {} is lost ({}): training cannot continue{}", ended.index,
                                     ended.exit.text(), words.empty() ? "" : "; last log line: " + words));
  }
  ++ended_workers_;
  if (ended.exit.code == 0) return;
  // Servers detect the loss of a worker that has joined, but wait for one that has not. After the join,
  // another process may have the rank.
  const bool has_joined =
      ended.index < status_.workers.size() && status_.workers[ended.index].state != WorkerState::kAbsent;
  if (!has_joined) observer_->worker_died(WorkerId{static_cast<std::uint32_t>(ended.index)});
  // Wrong input, such as a damaged image with --strict, is the same for all workers.
  if (ended.exit.code == kWrongUsage) throw UserError(words);
  workers_.process_ended(ended.index, ended.exit.text() + (words.empty() ? "" : ", last log line: " + words));
}

void Supervisor::check_checkpoints() {
  if (status_.checkpoint != reported_.checkpoint) {
    reported_.checkpoint = status_.checkpoint;
    record_.checkpoint(reported_.checkpoint);
    if (!status_.finished)
      environment_.events.message(fmt::format("checkpoint at step {}", reported_.checkpoint.value));
  }
  if (status_.checkpoint_error == reported_.checkpoint_error) return;
  reported_.checkpoint_error = status_.checkpoint_error;
  if (!reported_.checkpoint_error.empty())
    environment_.events.message("a checkpoint could not be written: " + reported_.checkpoint_error);
}

void Supervisor::request_evaluation() {
  if (const auto next = schedule_.next(reported_.evaluated))
    observer_->request_weights(job_.layout, *next, job_.buffer_layout);
}

void Supervisor::check_evaluation() {
  if (!evaluation_.busy() && !status_.finished) {
    if (auto snapshot = observer_->take_weights()) {
      reported_.evaluated = snapshot->version;
      evaluation_.start(reported_.evaluated,
                        schedule_.seconds_at(reported_.evaluated, status_.version, status_.seconds),
                        std::move(snapshot->weights), std::move(snapshot->buffers));
    }
  }
  if (const auto outcome = evaluation_.poll()) {
    take_evaluation(*outcome);
    request_evaluation();
  }
}

void Supervisor::take_evaluation(const BackgroundEvaluation::Outcome& outcome) {
  if (outcome.test) {
    const auto record = schedule_.record(outcome.version, outcome.seconds, *outcome.test);
    environment_.events.evaluated(record);
    record_.evaluation(record);
    return;
  }
  if (is_wrong_input(outcome.error))
    fail(outcome.error, "an evaluation failed");
  else if (outcome.error)
    environment_.events.message(
        fmt::format("step {} could not be evaluated: {}", outcome.version.value, outcome.reason()));
}

// ---- stopping ----

void Supervisor::handle_stop() {
  const auto requests = environment_.stop.requests();
  if (requests > 0 && !status_.started)
    throw Failure(kInterrupted, job_.starts_workers ? "interrupted before training started"
                                                    : "interrupted before all workers had joined");
  if (requests > 0 && !stop_)
    begin_stop("stopping: the workers finish their step (Ctrl-C again to kill)", "interrupted");
  if (!stop_) return;
  const auto waited = environment_.now() - stop_->since;
  const bool stuck = stop_->workers_ended && !status_.saving && waited > kStepTimeout + kExitTimeout;
  if (requests > 1 || stuck)
    throw Failure(kInterrupted, "interrupted; the job did not end in time and was killed");
  if (!stop_->workers_ended && waited > kStepTimeout) end_steps();
}

// The last version is saved before the job ends with this error.
void Supervisor::fail(std::exception_ptr error, const std::string& why) {
  if (!failure_) failure_ = std::move(error);
  if (!stop_ && !status_.finished) begin_stop("stopping: " + why, why);
}

void Supervisor::begin_stop(const std::string& message, const std::string& reason) {
  const auto lost = std::ranges::count(status_.workers, WorkerState::kLost, &wire::WorkerRow::state);
  stop_ = Stop{environment_.now(), false, static_cast<std::uint64_t>(lost), environment_.stop.requests()};
  observer_->stop(reason);
  environment_.events.message(message);
}

// Without workers the servers save the version that they have, and end.
void Supervisor::end_steps() {
  stop_->workers_ended = true;
  workers_.stop_reporting_losses();
  environment_.events.message(fmt::format("a step takes longer than {} s: saving step {} without it",
                                          kStepTimeout.count(), status_.version.value));
  for (std::uint32_t rank = 0; rank < job_.config.workers; ++rank) {
    if (status_.workers[rank].state == WorkerState::kLeft) continue;
    processes_.kill_worker(rank);
    observer_->worker_died(WorkerId{rank});
  }
}

bool Supervisor::is_asked_again() {
  return environment_.stop.requests() > (stop_ ? stop_->requests : 0);
}

// Servers write the last version before they end. There is no timeout; only the user can cut it short.
void Supervisor::await_checkpoint() {
  if (status_.saving) environment_.events.message("writing the last checkpoint (Ctrl-C to stop waiting)");
  while (status_.saving && !is_asked_again()) {
    if (auto lost = observer_->poll(SteadyClock::now() + kPollInterval); !lost.is_ok()) server_lost(lost);
    poll();
  }
  is_unsaved_ = status_.saving;
}

// The connection broke: report the process that ended, if any.
void Supervisor::server_lost(const Status& why) {
  for (int i = 0; i < 20; ++i) {
    auto ended = processes_.reap();
    std::erase_if(ended, [](const auto& e) { return !e.is_server; });
    std::ranges::stable_sort(ended, std::greater(), [](const auto& e) { return e.exit.signal; });
    for (const auto& server : ended) process_ended(server);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  throw Failure(kLost, why.message() + ": training cannot continue");
}

// A worker's connection breaks before its process ends: wrong input is known only then.
std::exception_ptr Supervisor::await_wrong_input() {
  const auto deadline = SteadyClock::now() + kCauseTimeout;
  try {
    for (check_processes();
         job_.starts_workers && ended_workers_ < job_.config.workers && SteadyClock::now() < deadline;
         check_processes())
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  } catch (const UserError&) {
    return std::current_exception();
  }
  return {};
}

}  // namespace capstan::job
