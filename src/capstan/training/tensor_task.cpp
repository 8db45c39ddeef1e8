#include "capstan/torch/tensor_task.h"

#include <limits>
#include <utility>

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "capstan/layout.h"
#include "capstan/user_error.h"

namespace capstan {
namespace {

void check(const TensorData& data, const char* split) {
  for (const auto* tensor : {&data.input, &data.target})
    if (!tensor->defined() || tensor->dim() == 0)
      throw UserError(fmt::format("the {} of the {} data has no samples: its first dimension must count them",
                                  tensor == &data.input ? "input" : "target", split));
  const auto samples = data.input.size(0);
  if (samples == 0) throw UserError(fmt::format("the {} data has no samples", split));
  if (samples != data.target.size(0))
    throw UserError(fmt::format("the {} data has {} inputs and {} targets: give one target per input", split,
                                samples, data.target.size(0)));
  if (samples > std::numeric_limits<std::uint32_t>::max())
    throw UserError(fmt::format("the {} data has {} samples: fewer than 2^32 are possible", split, samples));
}

double value_of(const at::Tensor& mean, const std::string& metric) {
  if (!mean.defined() || mean.numel() != 1)
    throw UserError(fmt::format("metric {} must be a scalar, the mean over a batch; it has the shape {}",
                                metric, mean.defined() ? shape_text(mean.sizes().vec()) : "of no tensor"));
  return mean.item<double>();
}

}  // namespace

TensorTask::TensorTask(std::shared_ptr<torch::nn::Module> module, TensorData train, TensorData test,
                       BatchMean loss, std::vector<MeasuredMetric> metrics)
    : ModuleTask(std::move(module)),
      train_(std::move(train)),
      test_(std::move(test)),
      loss_(std::move(loss)),
      metrics_(std::move(metrics)) {
  check(train_, "training");
  check(test_, "test");
  metrics_.push_back({{"loss"}, loss_});
}

SplitInfo TensorTask::split(Split split) const {
  return {static_cast<std::uint64_t>(data(split).input.size(0))};
}

Batch TensorTask::batch(Split split, const BatchRequest& request) {
  const auto index = at::empty({static_cast<std::int64_t>(request.samples.size())}, at::kLong);
  std::copy(request.samples.begin(), request.samples.end(), index.data_ptr<std::int64_t>());
  const auto& from = data(split);
  return {from.input.index_select(0, index), from.target.index_select(0, index), {}, request.samples.size()};
}

at::Tensor TensorTask::loss(std::size_t, const Batch& batch) {
  return loss_(batch.input, batch.target);
}

std::vector<Metric> TensorTask::metrics() const {
  std::vector<Metric> out;
  for (const auto& m : metrics_) out.push_back(m.metric);
  return out;
}

std::vector<MetricSum> TensorTask::evaluate(const Batch& batch) {
  const auto samples = static_cast<double>(batch.samples);
  std::vector<MetricSum> out;
  for (const auto& m : metrics_)
    out.push_back({value_of(m.mean(batch.input, batch.target), m.metric.name) * samples, samples});
  return out;
}

}  // namespace capstan
