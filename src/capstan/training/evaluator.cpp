#include "capstan/training/evaluator.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "capstan/models/arena.h"
#include "capstan/models/buffers.h"
#include "capstan/training/batches.h"
#include "capstan/training/task_errors.h"
#include "capstan/user_error.h"

namespace capstan::training {
namespace {

constexpr std::uint64_t kSeed = 1;  // of random numbers that a task draws when it is evaluated

// Evaluation mode within a scope.
class EvaluationMode {
 public:
  explicit EvaluationMode(Task& task) : task_(task) { task_.train(false); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;
  ~EvaluationMode() { task_.train(true); }

 private:
  Task& task_;
  const at::NoGradGuard no_grad_;
};

// A sum for each metric.
std::vector<MetricSum> sums_of(Task& task, const Batch& batch, std::size_t metrics) {
  std::vector<MetricSum> sums;
  try {
    sums = task.evaluate(batch);
  } catch (...) {
    rethrow_from_task("evaluate()");
  }
  if (sums.size() != metrics)
    throw UserError(
        fmt::format("evaluate() of the task returned {} sums: it must return one for each of its {} "
                    "metrics",
                    sums.size(), metrics));
  return sums;
}

}  // namespace

std::optional<metrics::Evaluation> evaluate(Task& task, const EvaluatorOptions& options) {
  const EvaluationMode mode(task);
  at::manual_seed(kSeed);
  metrics::Evaluation result;
  result.metrics = task.metrics();
  std::vector<MetricSum> totals(result.metrics.size());
  const auto samples = task.split(Split::kTest).samples;
  const auto size = options.batch > 0 ? options.batch : task.evaluation_batch();
  Batches batches(task, size, options.loader_threads);
  for (std::uint64_t first = 0; first < samples; first += size) {
    if (options.cancel && *options.cancel) return {};
    const auto batch = batches.next();
    const auto sums = sums_of(task, batch, totals.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      totals[i].sum += sums[i].sum;
      totals[i].weight += sums[i].weight;
    }
    result.samples += batch.samples;
  }
  for (std::size_t i = 0; i < totals.size(); ++i)
    result.values.push_back(metrics::value_of(result.metrics[i], totals[i]));
  return result;
}

std::optional<metrics::Evaluation> evaluate(Task& task, const FlatLayout& layout,
                                            std::span<const float> weights, std::span<const float> buffers,
                                            const EvaluatorOptions& options) {
  models::bind_parameters(task.parameters(), layout, weights.data());
  models::copy_buffers_in(task.buffers(), buffers);
  return evaluate(task, options);
}

}  // namespace capstan::training
