#pragma once

#include <exception>

#include "capstan/job/environment.h"
#include "capstan/job/evaluator_process.h"
#include "capstan/job/prepared_job.h"
#include "capstan/job/result.h"
#include "capstan/job/run_record.h"
#include "capstan/job/single_checkpoints.h"
#include "capstan/training/evaluator.h"
#include "capstan/training/single.h"

namespace capstan::job {

struct RunOptions {
  bool evaluator = false;        // the command eval runs beside the job
  double progress_interval = 2;  // seconds
};

// Trains in this process: alone or, with a group, as rank 0 of several processes that split every step. Use
// from one thread.
class SingleProcess {
 public:
  // `job` and `record` must outlive this object.
  SingleProcess(PreparedJob& job, Environment environment, RunRecord& record, const RunOptions& options,
                const training::GroupMember& group = {});

  // After one stop request, returns the result so far; after a second one, throws Failure. If an evaluation
  // reports wrong input, saves the last version and then throws UserError.
  TrainResult run();

 private:
  void stepped(const training::SingleStep& step);
  void updated(const training::SingleState& state);
  void epoch_ended();
  std::optional<metrics::Evaluation> evaluate();
  TrainResult result_of(training::SingleResult& trained);
  void evaluate_last(TrainResult& result);

  // Loss of the current epoch, and of the previous one.
  struct EpochLoss {
    double sum = 0, samples = 0;
    std::optional<double> last = {};
    std::optional<double> mean() const { return samples > 0 ? sum / samples : last; }
  };

  PreparedJob& job_;
  Environment environment_;
  RunRecord& record_;
  const training::GroupMember group_;
  const optimizer::OptimizerSet rules_;
  const EvaluationSchedule schedule_;
  SingleCheckpoints checkpoints_;
  EvaluatorProcess evaluator_;
  ProgressCounter progress_;
  std::atomic<bool> stop_ = false;
  wire::StatusReport status_;
  EpochLoss loss_;
  std::optional<metrics::Evaluation> test_;  // of the last complete epoch
  std::exception_ptr failure_;               // thrown after the last version is saved
};

}  // namespace capstan::job
