#pragma once

#include <memory>

#include "capstan/lab/data.h"
#include "capstan/lab/model.h"
#include "capstan/lab/registry.h"
#include "capstan/torch/module_task.h"

namespace capstan::lab {

// What a model, data and a criterion make: the task that trainers train. Both splits are all samples; the
// only metric is the loss. Not thread-safe.
class PluginTask final : public ModuleTask {
 public:
  // Tries the first samples. Throws UserError with the shapes if model, data and criterion do not fit each
  // other.
  PluginTask(std::unique_ptr<Data> data, std::shared_ptr<Model> model, Criterion criterion);

  SplitInfo split(Split) const override { return {static_cast<std::uint64_t>(data_->size())}; }
  Batch batch(Split split, const BatchRequest& request) override;
  at::Tensor loss(std::size_t phase, const Batch& batch) override;
  std::vector<Metric> metrics() const override { return {{"loss"}}; }
  std::vector<MetricSum> evaluate(const Batch& batch) override;

 private:
  void try_once();

  const std::unique_ptr<Data> data_;
  const std::shared_ptr<Model> model_;
  const Criterion criterion_;
};

}  // namespace capstan::lab
