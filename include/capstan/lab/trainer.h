#pragma once

#include "capstan/cxx20.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <capstan/torch/task.h>

#include "capstan/lab/configuration.h"
#include "capstan/lab/metrics_logger.h"

namespace capstan::training {
class AllreduceGroup;
}

namespace capstan::lab {

// What a trainer gets. All trainers have the same values, except for the rank.
struct TrainerContext {
  std::uint32_t rank = 0, trainers = 1;
  std::uint64_t seed = 1, epochs = 1, batch_size = 32;
  double learning_rate = 1e-4;
  std::string optimizer = "sgd";     // of a strategy without servers
  std::string hook;                  // --ddp-hook
  std::vector<std::string> servers;  // their addresses
  std::string token;                 // the secret of this run, which servers ask for
  double connect_timeout = 30;       // seconds
  MetricsLogger* metrics = nullptr;
  // Of the trainers; null if the configuration needs none.
  std::shared_ptr<training::AllreduceGroup> group;
  // Called after each step.
  std::function<void(std::uint64_t done, std::uint64_t total)> on_step;
};

// The position of a step: its index in the epoch, from 0.
struct Step {
  std::uint64_t epoch = 0, index = 0;

  MetricKey key() const { return {epoch, index}; }
};

// What one run of a trainer came to.
struct TrainerResult {
  std::uint64_t steps = 0, samples = 0;
  double loss = 0;  // of the last step
  std::uint64_t bytes_pushed = 0, bytes_pulled = 0;
  std::optional<double> hidden;  // the part of communication behind backward, 0 … 1; none if there was none
};

// Trains one replica of a task, together with other trainers and perhaps with servers. Each object is used
// for one run. Use from one thread. An exception ends the run.
class Trainer {
 public:
  explicit Trainer(TrainerContext context) : context_(std::move(context)) {}
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  virtual ~Trainer() = default;

  // Before the measured time: connects to servers, allocates memory.
  virtual void prepare(Task& /*task*/) {}
  // One run on this trainer's batches. The task has its initial weights, the same in all trainers.
  virtual void train(Task& task) = 0;

  const TrainerResult& result() const { return result_; }

 protected:
  const TrainerContext& context() const { return context_; }
  TrainerResult& mutable_result() { return result_; }

  // Calls `body` for every step with its batch; it returns the loss. The batches of an epoch are those of the
  // training split in its order, dealt round-robin; all trainers have the same number of steps. Measures
  // data_metric,data_wait and batch_level_metric,batch_all.
  void run_steps(Task& task, const std::function<double(const Step&, const Batch&)>& body);
  // The loss of a batch; measures forward_metric,forward_pass.
  at::Tensor forward(Task& task, const Step& step, const Batch& batch);
  // Gradients of the loss, then `communicate`, if any, which waits for those of other trainers; measures
  // backward_metric,backward over both, and communication_metric,gradient_wait.
  void backward(const Step& step, const at::Tensor& loss, const std::function<void()>& communicate = {});
  // Measures optimizer_metric,optimizer_step.
  void update(const Step& step, const std::function<void()>& optimizer_step);

  // Measure a part of the trainer's work: it appears in the results as TYPE,NAME. A key may appear once per
  // type.
  void record_start(std::string_view type, MetricKey key, std::string_view name) const {
    context_.metrics->record_start(type, key, name);
  }
  void record_end(std::string_view type, MetricKey key) const { context_.metrics->record_end(type, key); }

 private:
  const TrainerContext context_;
  TrainerResult result_;
};

// How many steps each trainer has in an epoch, and how many batches are left over.
struct DealtBatches {
  std::uint64_t steps = 0, left_over = 0;
};
DealtBatches deal_batches(std::uint64_t samples, std::uint64_t batch_size, std::uint32_t trainers);

}  // namespace capstan::lab
