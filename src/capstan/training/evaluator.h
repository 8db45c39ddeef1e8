#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "capstan/layout.h"
#include "capstan/metrics/evaluation.h"
#include "capstan/torch/task.h"

namespace capstan::training {

struct EvaluatorOptions {
  unsigned loader_threads = 1;
  std::uint64_t batch = 0;                    // samples; 0: the task's choice
  const std::atomic<bool>* cancel = nullptr;  // checked before each batch
};

// Evaluates a task on its whole test split, with the parameters as they are bound, in evaluation mode; leaves
// the task in training mode. The result depends on parameters and buffers only. No value if cancelled. Throws
// UserError for data that cannot be read, and if the task's own code fails.
std::optional<metrics::Evaluation> evaluate(Task& task, const EvaluatorOptions& options = {});

// The same after binding the task to flat weights, which must outlive the binding. Empty `buffers` leave the
// task's buffers unchanged.
std::optional<metrics::Evaluation> evaluate(Task& task, const FlatLayout& layout,
                                            std::span<const float> weights, std::span<const float> buffers,
                                            const EvaluatorOptions& options = {});

}  // namespace capstan::training
