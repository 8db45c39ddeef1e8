#pragma once

#include <future>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "capstan/base/flat_layout.h"
#include "capstan/base/ids.h"
#include "capstan/training/evaluate.h"

namespace capstan::training {

// Evaluates snapshots of the weights on a test set, one at a time, while the caller goes on. Use from one
// thread.
class BackgroundEvaluator {
 public:
  // `model` is this evaluator's own; `test` must outlive it.
  BackgroundEvaluator(std::unique_ptr<models::Model> model, FlatLayout layout, const data::ImageSource& test);
  ~BackgroundEvaluator();

  bool busy() const { return running_.valid(); }
  // `buffers` are the model's buffers, flat; an empty array leaves them as they are.
  void start(std::vector<float> weights, std::span<const float> buffers = {});
  // The result, once it is there.
  std::optional<Evaluation> poll();
  Evaluation wait();

 private:
  std::unique_ptr<models::Model> model_;
  const FlatLayout layout_;
  const data::ImageSource& test_;
  std::vector<float> weights_;  // what the model's parameters are views of
  std::future<Evaluation> running_;
};

}  // namespace capstan::training
