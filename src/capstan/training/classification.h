#pragma once

#include <memory>

#include "capstan/models/model.h"
#include "capstan/training/dataset_task.h"
#include "capstan/training/objective.h"

namespace capstan::training {

// A network of the zoo on a dataset of labelled images: cross-entropy; accuracy, top-5 accuracy.
class Classification final : public DatasetTask {
 public:
  // The training split may be absent: then only the test split can be used.
  Classification(data::Dataset dataset, std::unique_ptr<models::Model> model);

  const NamedTensors& parameters() const override { return model_->parameters(); }
  const NamedTensors& buffers() const override { return model_->buffers(); }
  void train(bool on) override { model_->train(on); }
  at::Tensor loss(std::size_t phase, const Batch& batch) override;
  std::vector<Metric> metrics() const override { return objective_.metrics(); }
  std::vector<MetricSum> evaluate(const Batch& batch) override;

 private:
  const std::unique_ptr<models::Model> model_;
  const Objective objective_;
};

}  // namespace capstan::training
