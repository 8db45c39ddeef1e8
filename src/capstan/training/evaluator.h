#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <span>

#include "capstan/base/flat_layout.h"
#include "capstan/data/image_source.h"
#include "capstan/models/model.h"
#include "capstan/training/evaluation.h"

namespace capstan::training {

struct EvaluatorOptions {
  unsigned loader_threads = 1;
  std::size_t batch = 0;                      // samples; 0: chosen by their size
  const std::atomic<bool>* cancel = nullptr;  // checked before each batch
};

// Evaluates a model on a whole test set. Several threads may use one evaluator, each with its own model.
class Evaluator {
 public:
  // `test` must outlive the evaluator.
  explicit Evaluator(const data::ImageSource& test, EvaluatorOptions options = {});

  // Evaluates with the parameters as they are bound, in evaluation mode; leaves the model in training mode.
  // No value if cancelled. Throws UserError for images that cannot be read.
  std::optional<Evaluation> evaluate(models::Model& model) const;
  // The same after binding the model to flat weights, which must outlive the binding. Empty `buffers` leave
  // the model's buffers unchanged.
  std::optional<Evaluation> evaluate(models::Model& model, const FlatLayout& layout,
                                     std::span<const float> weights, std::span<const float> buffers) const;

 private:
  const data::ImageSource& test_;
  const EvaluatorOptions options_;
};

}  // namespace capstan::training
