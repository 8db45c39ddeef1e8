#include "capstan/lab/plugin_task.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "capstan/lab/plugin_call.h"
#include "capstan/layout.h"
#include "capstan/training/task_errors.h"
#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

constexpr std::uint32_t kTried = 8;  // samples

std::string shape(const at::Tensor& tensor) {
  return fmt::format("{} {}", shape_text(tensor.sizes().vec()), c10::toString(tensor.scalar_type()));
}

}  // namespace

PluginTask::PluginTask(std::unique_ptr<Data> data, std::shared_ptr<Model> model, Criterion criterion)
    : ModuleTask(model), data_(std::move(data)), model_(std::move(model)), criterion_(std::move(criterion)) {
  if (data_->size() < 1) throw UserError("the data has no samples");
  try_once();
}

void PluginTask::try_once() {
  const at::NoGradGuard no_grad;
  std::vector<std::uint32_t> first(std::min<std::int64_t>(kTried, data_->size()));
  std::iota(first.begin(), first.end(), 0);
  const auto batch = this->batch(Split::kTrain, {0, first});
  at::Tensor output;
  model_->eval();
  try {
    output = model_->forward(batch.input);
  } catch (const std::exception& failure) {
    throw UserError(fmt::format("the model does not take the data, an input of {}: {}", shape(batch.input),
                                training::reason_of(failure)));
  }
  try {
    (void)criterion_(output, batch.target);
  } catch (const std::exception& failure) {
    throw UserError(fmt::format("the criterion does not take the model's output of {} and a target of {}: {}",
                                shape(output), shape(batch.target), training::reason_of(failure)));
  }
  model_->train();
}

Batch PluginTask::batch(Split, const BatchRequest& request) {
  auto [input, target] = call_plugin("the data", [&] { return data_->batch(request.samples); });
  return {std::move(input), std::move(target), {}, request.samples.size()};
}

at::Tensor PluginTask::loss(std::size_t, const Batch& batch) {
  const auto output = call_plugin("the model", [&] { return model_->forward(batch.input); });
  return call_plugin("the criterion", [&] { return criterion_(output, batch.target); });
}

std::vector<MetricSum> PluginTask::evaluate(const Batch& batch) {
  const auto samples = static_cast<double>(batch.samples);
  return {{loss(0, batch).item<double>() * samples, samples}};
}

}  // namespace capstan::lab
