#include "capstan/training/classification.h"

#include <utility>

namespace capstan::training {

Classification::Classification(data::Dataset dataset, std::unique_ptr<models::Model> model)
    : DatasetTask(std::move(dataset)), model_(std::move(model)), objective_("cross-entropy", shape()) {}

// Networks with auxiliary heads have a loss of their own.
at::Tensor Classification::loss(std::size_t, const Batch& batch) {
  return model_->loss(batch.input, batch.target);
}

std::vector<MetricSum> Classification::evaluate(const Batch& batch) {
  return objective_.evaluate(model_->forward(batch.input), batch.target);
}

}  // namespace capstan::training
