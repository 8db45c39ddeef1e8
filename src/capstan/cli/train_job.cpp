#include "capstan/cli/train_job.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <signal.h>

#include "capstan/base/user_error.h"
#include "capstan/checkpoint/model_file.h"
#include "capstan/cli/command.h"
#include "capstan/cli/evaluator_child.h"
#include "capstan/cli/job_dataset.h"
#include "capstan/cli/output.h"
#include "capstan/cli/progress.h"
#include "capstan/client/connector.h"
#include "capstan/client/observer.h"
#include "capstan/data/partition.h"
#include "capstan/launch/local_job.h"
#include "capstan/strategy/strategy.h"
#include "capstan/training/background_evaluator.h"

namespace capstan::cli {
namespace {

constexpr auto kLookInterval = std::chrono::milliseconds(50);
constexpr auto kEndPatience = std::chrono::seconds(5);

bool uses_local_steps(const TrainContext& context) {
  return context.config.plan().first->local_steps().uses_local_steps();
}

// Every process is given the folder; only the first server looks at it.
std::vector<std::string> serve_arguments(const TrainContext& context) {
  // Where workers train by themselves, the learning rate follows their own steps.
  std::vector<std::string> arguments = {
      "--config=" + (context.folder.path() / "config.toml").string(),
      "--transport=" + context.config.transport,
      fmt::format("--total-steps={}",
                  uses_local_steps(context) ? context.plan.worker_steps : context.plan.total),
      fmt::format("--loss-window={}", std::min<std::uint64_t>(context.plan.per_epoch, 1'000'000)),
      "--train-dir=" + context.folder.path().string()};
  if (context.resume) arguments.push_back("--resume=" + context.resume->folder.string());
  return arguments;
}

Progress make_progress(const TrainContext& context) {
  const auto& plan = context.plan;
  const auto interval = context.config.log_interval;
  return uses_local_steps(context) ? Progress(plan.segment_steps, interval, Progress::By::kWorkerSteps)
                                   : Progress(plan.total, interval);
}

// One job from the first process to the last evaluation.
class Supervisor {
 public:
  explicit Supervisor(TrainContext& context)
      : context_(context),
        config_(context.config),
        plan_(context.plan),
        job_({config_.servers, serve_arguments(context), config_.listen, context.token,
              context.folder.path()}),
        progress_(make_progress(context)),
        evaluator_(std::move(context.model), context.layout, *context.dataset.test),
        evaluator_process_(context.evaluator, context.folder.path()) {}

  job::TrainResult run() {
    start();
    while (!status_.finished) {
      look();
      if (interrupted_at_ &&
          (SteadyClock::now() - *interrupted_at_ > kEndPatience || context_.interrupts.count() > 1)) {
        throw Failure(kInterrupted, "interrupted; the job did not end in time and was killed");
      }
      if (auto lost = observer_->poll(SteadyClock::now() + kLookInterval); !lost.is_ok()) server_lost(lost);
    }
    await_checkpoint();
    auto result = finish();
    result.interrupted = interrupted_at_.has_value();
    return result;
  }

 private:
  void start() {
    client::LinkOptions link;
    link.servers = job_.addresses();
    link.token = job_.token();
    auto joined =
        client::Observer::join(link, client::make_connector(client::parse_transport(config_.transport)));
    if (!joined) throw Failure(kLost, joined.status().message());
    observer_ = std::move(*joined);
    if (const auto uneven =
            data::describe_uneven({context_.dataset.train->count(), config_.workers, config_.batch_size});
        !uneven.empty())
      progress_.say(uneven);
    if (!context_.starts_workers)
      progress_.say(
          fmt::format("listening on {}: {} workers may come", job_.addresses()[0], config_.workers));
    for (std::uint32_t rank = 0; context_.starts_workers && rank < config_.workers; ++rank) {
      job_.start_worker({launch::program("capstan-torch"), "work",
                         "--config=" + (context_.folder.path() / "config.toml").string(),
                         "--transport=" + config_.transport, "--server=" + job_.address_list(),
                         fmt::format("--rank={}", rank)});
    }
    ask_for_epoch();
  }

  void ask_for_epoch() {
    if (const auto next = schedule_.next(evaluated_version_))
      observer_->request_weights(context_.layout, *next, context_.buffer_layout);
  }

  // Servers write what was reached before they end.
  void await_checkpoint() {
    if (status_.saving) progress_.say("writing the last checkpoint (Ctrl-C to leave it)");
    const auto asked = context_.interrupts.count();
    while (status_.saving && context_.interrupts.count() == asked) look();
  }

  void look() {
    processes_ended(job_.reap());
    if (!interrupted_at_ && context_.interrupts.count() > 0) {
      if (!context_.starts_workers && !status_.started)
        throw Failure(kInterrupted, "interrupted before all workers had come");
      interrupted_at_ = SteadyClock::now();
      progress_.say("stopping: the workers finish their step (Ctrl-C again to kill)");
      observer_->stop("interrupted");
    }
    auto status = observer_->status();
    if (!status) server_lost(status.status());
    status_ = std::move(*status);
    for (std::size_t rank = 0; rank < status_.workers.size(); ++rank) {
      const auto state = status_.workers[rank].state;
      if (state == wire::WorkerState::kLive) say_here(rank);
      if (state == wire::WorkerState::kLost)
        say_lost(rank, said_here_[rank] || context_.starts_workers ? "no sign of life" : "it did not come");
    }
    say_checkpoints();
    evaluator_process_.look([&](const std::string& line) { progress_.say(line); });
    if (!evaluator_.busy()) {
      if (auto snapshot = observer_->take_weights(); snapshot && !status_.finished) {
        evaluated_version_ = snapshot->version;
        evaluated_seconds_ = schedule_.seconds_at(snapshot->version, status_.version, status_.seconds);
        evaluator_.start(std::move(snapshot->weights), snapshot->buffers);
      }
    }
    if (const auto test = evaluator_.poll()) epoch_done(*test);
    if (progress_.due() && status_.started) show();
  }

  void show() {
    progress_.show(status_);
    context_.folder.progress(status_);
  }

  void epoch_done(const training::Evaluation& test) {
    record_epoch(evaluated_version_, test);
    ask_for_epoch();
  }

  void record_epoch(Version version, const training::Evaluation& test) {
    record_evaluation(context_.folder, progress_, version, plan_, test, evaluated_seconds_);
  }

  // Of several, the one that was killed is the cause, and the others ended because of it.
  void processes_ended(std::vector<launch::LocalJob::Ended> list) {
    std::ranges::stable_sort(list, std::greater(), [](const auto& e) { return e.exit.signal; });
    for (const auto& ended : list) process_ended(ended);
  }

  void process_ended(const launch::LocalJob::Ended& ended) {
    if (ended.is_server) {
      throw Failure(kLost, fmt::format("server {} is lost ({}): training cannot go on{}", ended.index,
                                       ended.exit.text(),
                                       ended.last_words.empty() ? "" : "; it said: " + ended.last_words));
    }
    if (ended.exit.code == 0) return;
    // Its input is wrong, a damaged image with --strict say, and the others' is the same.
    if (ended.exit.code == kWrongUsage) throw UserError(without_name(ended.last_words));
    say_lost(ended.index,
             ended.exit.text() + (ended.last_words.empty() ? "" : ", it said: " + ended.last_words));
    observer_->worker_died(WorkerId{static_cast<std::uint32_t>(ended.index)});
  }

  void say_checkpoints() {
    if (status_.checkpoint != said_checkpoint_) {
      said_checkpoint_ = status_.checkpoint;
      context_.folder.checkpoint(said_checkpoint_);
      if (!status_.finished) progress_.say(fmt::format("checkpoint at step {}", said_checkpoint_.value));
    }
    if (status_.checkpoint_error != said_checkpoint_error_) {
      said_checkpoint_error_ = status_.checkpoint_error;
      if (!said_checkpoint_error_.empty())
        progress_.say("a checkpoint could not be written: " + said_checkpoint_error_);
    }
  }

  // Who starts workers by hand wants to see them arrive.
  void say_here(std::size_t rank) {
    if (context_.starts_workers || said_here_[rank]) return;
    said_here_[rank] = true;
    progress_.say(fmt::format("worker {} is here", rank));
  }

  // Once per worker, whoever notices first: its process ended, or the servers heard nothing of it.
  void say_lost(std::size_t rank, const std::string& why) {
    if (said_lost_[rank]) return;
    said_lost_[rank] = true;
    const bool others = std::ranges::any_of(
        status_.workers, [](const auto& w) { return w.state == wire::WorkerState::kLive; });
    progress_.say(
        fmt::format("worker {} is lost ({}){}", rank, why, others ? ": training goes on without it" : ""));
  }

  // The connection broke: say which process ended, if one did.
  [[noreturn]] void server_lost(const Status& why) {
    for (int i = 0; i < 20; ++i) {
      auto ended = job_.reap();
      std::erase_if(ended, [](const auto& e) { return !e.is_server; });
      processes_ended(std::move(ended));
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    throw Failure(kLost, why.message() + ": training cannot go on");
  }

  job::TrainResult finish() {
    if (evaluator_.busy()) record_epoch(evaluated_version_, evaluator_.wait());
    job::TrainResult result;
    result.config = config_;
    // Workers of other hosts may come by another way than this process.
    result.transport = context_.starts_workers ? observer_->transport() : config_.transport;
    result.take(status_, context_.dataset.train->count());
    result.train_loss = status_.loss;
    result.run_dir = context_.folder.path().string();
    result.checkpoint = status_.checkpoint.value;
    if (context_.resume) result.resumed(context_.resume->manifest, context_.dataset.train->count());
    if (result.lost_workers == config_.workers) {
      throw Failure(kLost, fmt::format("all {} workers are lost after {} updates; see {}/{}-0.log",
                                       config_.workers, result.reached.steps, result.run_dir,
                                       context_.starts_workers ? "worker" : "server"));
    }
    auto last = observer_->pull(context_.layout, status_.version, context_.buffer_layout);
    if (!last) server_lost(last.status());
    observer_.reset();
    checkpoint::write_model(context_.folder.path() / "weights.safetensors", context_.layout, last->weights,
                            context_.buffer_layout, last->buffers);
    evaluator_.start(std::move(last->weights), last->buffers);
    result.test = evaluator_.wait();
    evaluated_seconds_ = status_.seconds;
    record_epoch(last->version, result.test);
    for (std::uint32_t rank = 0; rank < job_.workers(); ++rank) {
      if (status_.workers[rank].state == wire::WorkerState::kLost) job_.worker(rank).signal(SIGKILL);
    }
    job_.wait(SteadyClock::now() + kEndPatience);
    evaluator_process_.finish([&](const std::string& line) { progress_.say(line); },
                              [&] { return context_.interrupts.count() > 0 && !interrupted_at_; });
    for (std::uint32_t rank = 0; rank < job_.workers(); ++rank) {
      for (const auto& warning : warnings_in(context_.folder.path() / fmt::format("worker-{}.log", rank)))
        progress_.say(fmt::format("worker {}: {}", rank, warning));
    }
    for (const auto& ended : job_.reap()) {
      if (ended.exit.code == 0 || (!ended.is_server && said_lost_[ended.index])) continue;
      progress_.say(fmt::format("{} {} ended badly ({}) when all was done",
                                ended.is_server ? "server" : "worker", ended.index, ended.exit.text()));
    }
    return result;
  }

  TrainContext& context_;
  const config::JobConfig& config_;
  const job::StepBudget plan_;
  const job::EvaluationSchedule schedule_{plan_};
  launch::LocalJob job_;
  Progress progress_;
  training::BackgroundEvaluator evaluator_;
  EvaluatorChild evaluator_process_;
  std::unique_ptr<client::Observer> observer_;
  wire::StatusReport status_;
  Version evaluated_version_ = context_.plan.start;
  double evaluated_seconds_ = 0;
  Version said_checkpoint_ = context_.plan.start;
  std::string said_checkpoint_error_;
  std::optional<TimePoint> interrupted_at_;
  std::vector<bool> said_here_ = std::vector<bool>(config_.workers);
  std::vector<bool> said_lost_ = std::vector<bool>(config_.workers);
};

}  // namespace

void record_evaluation(job::RunRecord& folder, Progress& progress, Version version,
                       const job::StepBudget& plan, const training::Evaluation& test, double seconds) {
  const auto record = job::EvaluationSchedule(plan).record(version, seconds, test);
  progress.say(record.text());
  folder.evaluation(record);
}

std::string without_name(const std::string& words) {
  constexpr std::string_view kName = "capstan: ";
  return words.starts_with(kName) ? words.substr(kName.size()) : words;
}

job::TrainResult train_with_servers(TrainContext& context) {
  return Supervisor(context).run();
}

}  // namespace capstan::cli
