#include "capstan/lab/trainer.h"

#include <numeric>

#include <fmt/format.h>

#include "capstan/lab/plugin_call.h"
#include "capstan/training/step.h"
#include "capstan/training/task_errors.h"
#include "capstan/user_error.h"

namespace capstan::lab {

DealtBatches deal_batches(std::uint64_t samples, std::uint64_t batch_size, std::uint32_t trainers) {
  const auto batches = (samples + batch_size - 1) / batch_size;
  return {batches / trainers, batches % trainers};
}

void Trainer::run_steps(Task& task, const std::function<double(const Step&, const Batch&)>& body) {
  const auto& c = context_;
  const auto samples = task.split(Split::kTrain).samples;
  const auto steps = deal_batches(samples, c.batch_size, c.trainers).steps;
  if (steps == 0)
    throw UserError(fmt::format("{} samples are fewer than one batch of {} for each of {} trainers", samples,
                                c.batch_size, c.trainers));
  std::vector<std::uint32_t> indices;
  Step step;
  // Batch b of an epoch is that of trainer b modulo their number.
  const auto stream = task.stream(
      Split::kTrain,
      [&, next = Step()]() mutable -> std::optional<BatchRequest> {
        if (next.index == steps) next = {next.epoch + 1, 0};
        if (next.epoch == c.epochs) return {};
        const auto begin = (next.index++ * c.trainers + c.rank) * c.batch_size;
        indices.resize(std::min(c.batch_size, samples - begin));
        std::iota(indices.begin(), indices.end(), static_cast<std::uint32_t>(begin));
        return BatchRequest{next.epoch, indices};
      },
      /*threads=*/0);
  for (step.epoch = 0; step.epoch < c.epochs; ++step.epoch) {
    for (step.index = 0; step.index < steps; ++step.index) {
      training::seed_step(c.seed, {c.rank}, {result_.steps});
      record_start("data_metric", step.key(), "data_wait");
      const auto batch = stream->next();
      record_end("data_metric", step.key());
      record_start("batch_level_metric", step.key(), "batch_all");
      result_.loss = body(step, batch);
      record_end("batch_level_metric", step.key());
      ++result_.steps;
      result_.samples += batch.samples;
      if (c.on_step) c.on_step(result_.steps, steps * c.epochs);
    }
  }
}

at::Tensor Trainer::forward(Task& task, const Step& step, const Batch& batch) {
  record_start("forward_metric", step.key(), "forward_pass");
  at::Tensor loss;
  try {
    loss = task.loss(0, batch);
    training::check_loss(loss);
  } catch (...) {
    training::rethrow_from_task("loss()");
  }
  record_end("forward_metric", step.key());
  return loss;
}

void Trainer::backward(const Step& step, const at::Tensor& loss, const std::function<void()>& communicate) {
  record_start("backward_metric", step.key(), "backward");
  // Also calls functions of derived trainers.
  call_plugin("the backward pass", [&] { loss.backward(); });
  if (communicate) {
    record_start("communication_metric", step.key(), "gradient_wait");
    communicate();
    record_end("communication_metric", step.key());
  }
  record_end("backward_metric", step.key());
}

void Trainer::update(const Step& step, const std::function<void()>& optimizer_step) {
  record_start("optimizer_metric", step.key(), "optimizer_step");
  optimizer_step();
  record_end("optimizer_metric", step.key());
}

}  // namespace capstan::lab
