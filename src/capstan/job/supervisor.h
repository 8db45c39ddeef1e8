#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "capstan/checkpoint/manifest.h"
#include "capstan/client/observer.h"
#include "capstan/config/job_config.h"
#include "capstan/job/background_evaluation.h"
#include "capstan/job/environment.h"
#include "capstan/job/evaluator_process.h"
#include "capstan/job/result.h"
#include "capstan/job/run_record.h"
#include "capstan/job/worker_watch.h"
#include "capstan/launch/processes.h"
#include "capstan/layout.h"

namespace capstan::job {

// A job of servers and workers, as its supervisor needs it. A value.
struct SupervisedJob {
  config::JobConfig config;
  StepBudget budget;
  FlatLayout layout, buffer_layout;
  std::vector<Metric> metrics;  // of evaluations
  std::uint64_t training_samples = 0;
  std::optional<checkpoint::Manifest> resume;
  bool starts_workers = true;  // false: the user starts them
  double progress_interval = 2;
};

// Monitors a job from start to end through an observer of its servers: reports progress and lost workers,
// evaluates each epoch, stops the job on request, saves the weights and returns a result. Use from one
// thread.
class Supervisor {
 public:
  // All references must outlive this object.
  Supervisor(SupervisedJob job, Environment environment, RunRecord& record, launch::Processes& processes,
             std::unique_ptr<client::Observer> observer, Evaluate evaluate, EvaluatorProcess& evaluator);

  // Throws Failure if a server or all workers are lost, and on the second stop request. If a worker or
  // an evaluation reports wrong input, saves the last version and then throws UserError.
  TrainResult run();

 private:
  static constexpr auto kPollInterval = std::chrono::milliseconds(50);
  static constexpr auto kExitTimeout = std::chrono::seconds(5);  // for processes to exit at the end

  struct Stop {
    TimePoint since;
    bool workers_ended = false;  // killed, because a step took too long
    std::uint64_t lost_before = 0;
    int requests = 0;  // that began it
  };

  // What has been reported to the user.
  struct Reported {
    Version evaluated, checkpoint;
    std::string checkpoint_error;
  };

  void announce();
  void poll();
  void check_processes();
  void process_ended(const launch::Processes::Ended& ended);
  void check_checkpoints();
  void check_evaluation();
  void request_evaluation();
  void take_evaluation(const BackgroundEvaluation::Outcome& outcome);
  void handle_stop();
  void fail(std::exception_ptr error, const std::string& why);
  void begin_stop(const std::string& message, const std::string& reason);
  void end_steps();
  void await_checkpoint();
  bool is_asked_again();  // a stop request after the one that stopped training, if any
  [[noreturn]] void server_lost(const Status& why);
  std::exception_ptr await_wrong_input();

  TrainResult finish();
  TrainResult reached() const;
  void save_weights(TrainResult& result);
  void evaluate_last(TrainResult& result, client::Observer::Snapshot snapshot);
  std::optional<BackgroundEvaluation::Outcome> await_evaluation();
  void await_processes();
  void end_processes();

  const SupervisedJob job_;
  Environment environment_;
  RunRecord& record_;
  launch::Processes& processes_;
  std::unique_ptr<client::Observer> observer_;
  EvaluatorProcess& evaluator_;
  const EvaluationSchedule schedule_;
  BackgroundEvaluation evaluation_;
  ProgressCounter progress_;
  WorkerWatch workers_;
  std::size_t ended_workers_ = 0;  // processes
  wire::StatusReport status_;
  Reported reported_;
  std::optional<Stop> stop_;
  bool is_unsaved_ = false;     // the user did not wait for the last checkpoint
  std::exception_ptr failure_;  // thrown after the last version is saved
};

}  // namespace capstan::job
