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
  std::size_t batch = 0;                      // samples at once; 0: as many as suit their size
  const std::atomic<bool>* cancel = nullptr;  // looked at before each batch
};

// Runs a model over a whole test set: of a run, of a checkpoint, of a process that trains by itself. Several
// threads may use one, each with a model of its own.
class Evaluator {
 public:
  // `test` must outlive it.
  explicit Evaluator(const data::ImageSource& test, EvaluatorOptions options = {});

  // The model as its parameters are bound, in evaluation mode; leaves it in training mode. Nothing where it
  // was cancelled. Throws UserError for images that cannot be read.
  std::optional<Evaluation> evaluate(models::Model& model) const;
  // The same after binding the model to flat weights, which must outlive the binding. Empty buffers leave the
  // model's as they are.
  std::optional<Evaluation> evaluate(models::Model& model, const FlatLayout& layout,
                                     std::span<const float> weights, std::span<const float> buffers) const;

 private:
  const data::ImageSource& test_;
  const EvaluatorOptions options_;
};

}  // namespace capstan::training
