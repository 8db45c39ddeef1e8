#include "capstan/lab/strategy_trainer.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "capstan/base/failure.h"
#include "capstan/client/connector.h"
#include "capstan/client/worker_client.h"
#include "capstan/lab/strategy_optimizer.h"
#include "capstan/models/arena.h"
#include "capstan/models/buffers.h"
#include "capstan/strategy/strategy_spec.h"
#include "capstan/training/allreduce.h"
#include "capstan/training/single.h"
#include "capstan/training/worker.h"
#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

using training::PhaseTimes;
using training::StepTimes;

// The samples of as many batches as give every trainer the same number. A task that carries state from batch
// to batch keeps its order.
SplitInfo dealt_samples(const Task& task, const TrainerContext& context) {
  const auto split = task.split(Split::kTrain);
  const auto steps = deal_batches(split.samples, context.batch_size, context.trainers).steps;
  return {std::min(split.samples, steps * context.trainers * context.batch_size),
          split.order == SampleOrder::kColumns ? split.order : SampleOrder::kOwn};
}

// A step's measurements by the names of the lab. A part that occurs in several phases counts as one
// measurement: their sum, which begins with the first.
class StepMetrics {
 public:
  explicit StepMetrics(MetricsLogger& metrics) : metrics_(metrics) {}

  // `pushed` and `pulled`: bytes of this step.
  void record(const StepTimes& step, std::uint64_t pushed, std::uint64_t pulled) {
    const MetricKey key{step.epoch, step.index};
    const auto& first = step.phases.front();
    metrics_.record("data_metric", key, "data_wait", step.begin, step.data_end);
    metrics_.record("batch_level_metric", key, "batch_all", step.data_end, step.end);
    Duration forward{}, backward{}, exchange{}, optimizer{};
    for (const auto& phase : step.phases) {
      forward += phase.forward_end - phase.forward_begin;
      backward += phase.backward_end - phase.forward_end;
      exchange += phase.exchange_end - phase.exchange_begin;
      optimizer += phase.optimizer_end - phase.optimizer_begin;
      record_push(phase);
    }
    record(key, "forward_metric", "forward_pass", first.forward_begin, forward);
    record(key, "backward_metric", "backward", first.forward_end, backward + exchange);
    if (exchange > Duration()) {
      record(key, "communication_metric", "gradient_wait", step.phases.back().exchange_begin, exchange);
      metrics_.record_value("bytes_metric", "pushed", "bytes", static_cast<double>(pushed));
      metrics_.record_value("bytes_metric", "pulled", "bytes", static_cast<double>(pulled));
    }
    if (optimizer > Duration())
      record(key, "optimizer_metric", "optimizer_step", first.optimizer_begin, optimizer);
  }

 private:
  void record(MetricKey key, const char* type, const char* name, TimePoint begin, Duration duration) {
    metrics_.record(type, key, name, begin, begin + duration);
  }
  void record_push(const PhaseTimes& phase) {
    if (phase.exchange_end == phase.exchange_begin) return;
    metrics_.record("hook_future_metric", {pushes_++, 0}, "push_pull", phase.exchange_begin,
                    phase.exchange_end);
  }

  MetricsLogger& metrics_;
  std::uint64_t pushes_ = 0;
};

// What trainers with and without servers share.
class StrategyTrainer : public Trainer {
 public:
  explicit StrategyTrainer(const TrainerContext& from) : Trainer(from), metrics_(*from.metrics) {}

  void prepare(Task& task) override {
    split_ = dealt_samples(task, context());
    if (split_.samples == 0)
      throw UserError(
          fmt::format("{} samples in batches of {} are fewer than one batch for each of {} trainers",
                      task.split(Split::kTrain).samples, context().batch_size, context().trainers));
  }

 protected:
  struct Bytes {
    std::uint64_t pushed = 0, pulled = 0;
  };
  // That this trainer has moved, in all.
  virtual Bytes moved() = 0;

  const SplitInfo& split() const { return split_; }
  // Communicates only between backward passes, and waits for the answer.
  void hides_nothing() { mutable_result().hidden = 0; }

  // The bytes before the first step, those of the initial weights, do not count.
  void begin_bytes() { start_ = counted_ = moved(); }
  void end_bytes() {
    const auto end = moved();
    mutable_result().bytes_pushed = end.pushed - start_.pushed;
    mutable_result().bytes_pulled = end.pulled - start_.pulled;
  }

  training::StepObserver observer() {
    const auto batch = context().batch_size * context().trainers;
    const auto total = context().epochs * ((split_.samples + batch - 1) / batch);
    return [this, total, is_measured = context().metrics->enabled()](const StepTimes& step) {
      const auto now = moved();
      if (is_measured) metrics_.record(step, now.pushed - counted_.pushed, now.pulled - counted_.pulled);
      counted_ = now;
      auto& result = mutable_result();
      ++result.steps;
      result.samples += step.samples;
      result.loss = step.loss;
      if (context().on_step) context().on_step(result.steps, total);
    };
  }

 private:
  StepMetrics metrics_;
  SplitInfo split_;
  Bytes start_, counted_;
};

// A worker of servers.
class ServedTrainer final : public StrategyTrainer {
 public:
  using StrategyTrainer::StrategyTrainer;

  void prepare(Task& task) override {
    StrategyTrainer::prepare(task);
    client::LinkOptions link;
    link.servers = context().servers;
    link.token = cluster::Token::parse(context().token, "the trainer's token");
    link.index = context().rank;
    link.connect_timeout = from_seconds(context().connect_timeout);
    layout_ = models::layout_of(task.parameters());
    std::vector<float> initial(layout_.size());
    models::copy_parameters_out(task.parameters(), layout_, initial);
    auto joined = client::WorkerClient::join(
        link, client::make_connector(client::TransportChoice::kAuto, link.servers), layout_, initial,
        {models::buffer_layout_of(task.buffers()),
         {split().samples, context().seed, context().batch_size},
         task.phases()});
    if (!joined)
      throw Failure(joined.status().code() == StatusCode::kRefused ? kWrongUsage : kLost,
                    joined.status().message());
    client_ = std::move(*joined);
  }

  void train(Task& task) override {
    training::WorkerOptions options;
    options.batch_size = context().batch_size;
    options.epochs = context().epochs;
    options.seed = context().seed;
    options.split = split();
    options.on_step = observer();
    const auto spec = strategy::parse_strategy_spec(client_->strategy(), client_->workers());
    if (!spec.first->local_steps().uses_local_steps()) hides_nothing();
    options.on_start = [this] { begin_bytes(); };
    const auto worked = training::run_worker(*client_, task, layout_, options);
    if (!worked) throw Failure(kLost, worked.status().message());
    end_bytes();
  }

 private:
  Bytes moved() override {
    const auto traffic = client_->traffic();
    return {traffic.pushed, traffic.pulled};
  }

  FlatLayout layout_;
  std::unique_ptr<client::WorkerClient> client_;
};

// A process with an optimizer of its own, in a group or not.
class ServerlessTrainer final : public StrategyTrainer {
 public:
  using StrategyTrainer::StrategyTrainer;

  void prepare(Task& task) override {
    StrategyTrainer::prepare(task);
    optimizer_ = strategy_optimizer(context().optimizer, context().learning_rate);
  }

  void train(Task& task) override {
    training::SingleOptions options;
    options.batch_size = context().batch_size;
    options.epochs = context().epochs;
    options.seed = context().seed;
    options.optimizer = optimizer_;
    options.split = split();
    options.group = {context().rank, context().trainers, {}};
    if (const auto& group = context().group) {
      hides_nothing();
      options.group.sum = [this, &group](std::span<float> values) {
        group->sum(values);
        summed_ += values.size_bytes();
      };
    }
    training::SingleCallbacks callbacks;
    callbacks.on_times = observer();
    const auto trained = training::train_single(options, task, callbacks);
    end_bytes();
    models::unbind_parameters(task.parameters());  // the result ends here
  }

 private:
  Bytes moved() override { return {summed_, summed_}; }

  optimizer::Spec optimizer_;
  std::uint64_t summed_ = 0;  // bytes
};

}  // namespace

std::unique_ptr<Trainer> make_strategy_trainer(const std::string& strategy, const TrainerContext& context) {
  if (strategy == "single" || strategy == "allreduce") {
    if (!context.servers.empty())
      throw UserError(fmt::format("trainer {}: it uses no servers; --nserver must be 0", strategy));
    if (strategy == "single" && context.trainers > 1)
      throw UserError(
          fmt::format("trainer single: it is one process, but --ntrainer is {}", context.trainers));
    if (strategy == "allreduce" && context.trainers > 1 && !context.group)
      throw UserError("trainer allreduce: it needs a group of the trainers");
    return std::make_unique<ServerlessTrainer>(context);
  }
  (void)strategy::parse_strategy_spec(strategy, context.trainers);
  if (context.servers.empty())
    throw UserError(fmt::format("trainer {}: it needs a server; --nserver must be at least 1", strategy));
  return std::make_unique<ServedTrainer>(context);
}

}  // namespace capstan::lab
