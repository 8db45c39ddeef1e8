#pragma once

#include <memory>

#include "capstan/data/dataset.h"
#include "capstan/models/model.h"
#include "capstan/torch/task.h"

namespace capstan::training {

// A network of the zoo on a dataset of labelled images: cross-entropy; accuracy, top-5 accuracy.
class Classification final : public Task {
 public:
  // The training split may be absent: then only the test split can be used.
  Classification(data::Dataset dataset, std::unique_ptr<models::Model> model);

  const NamedTensors& parameters() const override { return model_->parameters(); }
  const NamedTensors& buffers() const override { return model_->buffers(); }
  void train(bool on) override { model_->train(on); }

  SplitInfo split(Split split) const override;
  Batch batch(Split split, const BatchRequest& request) override;
  std::unique_ptr<BatchStream> stream(Split split, BatchSequence sequence, unsigned threads) override;
  at::Tensor loss(std::size_t phase, const Batch& batch) override;
  std::vector<Metric> metrics() const override;
  std::vector<MetricSum> evaluate(const Batch& batch) override;
  std::uint64_t evaluation_batch() const override;
  std::vector<std::string> warnings(Split split) const override;

 private:
  const data::SampleSource& source(Split split) const;

  const data::Dataset dataset_;
  const std::unique_ptr<models::Model> model_;
};

}  // namespace capstan::training
