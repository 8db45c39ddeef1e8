#pragma once

#include "capstan/cxx20.h"

#include <functional>
#include <memory>
#include <vector>

#include <capstan/torch/module_task.h>

namespace capstan {

// Samples in memory: along the first dimension, both tensors have one entry per sample.
struct TensorData {
  at::Tensor input, target;
};

// A module trained on samples in memory. Not thread-safe.
class TensorTask : public ModuleTask {
 public:
  // A scalar: the mean over the samples of a batch.
  using BatchMean = std::function<at::Tensor(const at::Tensor& input, const at::Tensor& target)>;
  struct MeasuredMetric {
    Metric metric;
    BatchMean mean;
  };

  // The metrics are the given ones, then the loss. Throws UserError for a module that ModuleTask refuses, for
  // an input and a target of different lengths, and for a split without samples.
  TensorTask(std::shared_ptr<torch::nn::Module> module, TensorData train, TensorData test, BatchMean loss,
             std::vector<MeasuredMetric> metrics = {});

  SplitInfo split(Split split) const override;
  Batch batch(Split split, const BatchRequest& request) override;
  at::Tensor loss(std::size_t phase, const Batch& batch) override;
  std::vector<Metric> metrics() const override;
  std::vector<MetricSum> evaluate(const Batch& batch) override;

 private:
  const TensorData& data(Split split) const { return split == Split::kTrain ? train_ : test_; }

  const TensorData train_, test_;
  const BatchMean loss_;
  std::vector<MeasuredMetric> metrics_;  // the loss last
};

}  // namespace capstan
