#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "capstan/data/sample_source.h"
#include "capstan/metric.h"

namespace capstan::training {

// A loss between a model's output and a dataset's target, and the metrics that fit it. Immutable.
class Objective {
 public:
  enum class Kind { kCrossEntropy, kBinaryCrossEntropy, kSquared, kAbsolute, kSmoothAbsolute };

  // `name` is a value of --loss; auto: cross-entropy for classes, mse for numbers. Throws UserError if it
  // does not fit the target.
  Objective(std::string_view name, const data::SampleShape& shape);

  Kind kind() const { return kind_; }
  // Throws UserError for the first target that the loss is not defined for; `part` is "training" or "test".
  void check_targets(const data::SampleSource& source, std::string_view part) const;
  // Throws UserError if outputs of this shape do not fit the target; `model` is its name in the message.
  void check_output(const at::Tensor& output, std::int64_t samples, const std::string& model) const;

  // The mean over the samples.
  at::Tensor loss(const at::Tensor& output, const at::Tensor& target) const;
  std::vector<Metric> metrics() const;
  std::vector<MetricSum> evaluate(const at::Tensor& output, const at::Tensor& target) const;

 private:
  at::Tensor fitted(const at::Tensor& output, const at::Tensor& target) const;

  const data::SampleShape shape_;
  const Kind kind_;
};

}  // namespace capstan::training
