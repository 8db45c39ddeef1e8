#include "capstan/training/evaluator.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>

#include "capstan/models/arena.h"
#include "capstan/models/buffers.h"
#include "capstan/training/loader.h"

namespace capstan::training {
namespace {

// At most 256, and fewer large images, since several batches are in memory at once.
std::size_t batch_size(const data::ImageShape& shape) {
  constexpr std::size_t kMost = 256, kMostFloats = std::size_t{8} << 20;
  return std::clamp<std::size_t>(kMostFloats / shape.pixels(), 1, kMost);
}

data::BatchSequence in_order(std::size_t count, std::size_t batch) {
  return [count, batch, first = std::size_t{0},
          samples = std::vector<std::uint32_t>()]() mutable -> std::optional<data::BatchRequest> {
    if (first >= count) return {};
    samples.resize(std::min(batch, count - first));
    std::iota(samples.begin(), samples.end(), static_cast<std::uint32_t>(first));
    first += samples.size();
    return data::BatchRequest{0, samples};
  };
}

}  // namespace

Evaluator::Evaluator(const data::ImageSource& test, EvaluatorOptions options)
    : test_(test), options_(options) {}

std::optional<Evaluation> Evaluator::evaluate(models::Model& model) const {
  const at::NoGradGuard no_grad;
  Evaluation result;
  std::int64_t right = 0, among_five = 0;
  model.train(false);
  const auto batch = options_.batch > 0 ? options_.batch : batch_size(test_.shape());
  Loader loader(test_, options_.loader_threads, in_order(test_.count(), batch));
  while (result.samples < test_.count()) {
    if (options_.cancel && *options_.cancel) {
      model.train(true);
      return {};
    }
    const auto shown = loader.next();
    const auto logits = model.forward(shown.images);
    result.loss +=
        at::cross_entropy_loss(logits, shown.labels).item<float>() * static_cast<double>(shown.size());
    right += logits.argmax(1).eq(shown.labels).sum().item<std::int64_t>();
    const auto likeliest = std::get<1>(logits.topk(std::min<std::int64_t>(5, logits.size(1)), 1));
    among_five += likeliest.eq(shown.labels.unsqueeze(1)).sum().item<std::int64_t>();
    result.samples += static_cast<std::uint64_t>(shown.size());
  }
  model.train(true);
  if (result.samples > 0) {
    result.loss /= static_cast<double>(result.samples);
    result.accuracy = static_cast<double>(right) / static_cast<double>(result.samples);
    result.top5 = static_cast<double>(among_five) / static_cast<double>(result.samples);
  }
  return result;
}

std::optional<Evaluation> Evaluator::evaluate(models::Model& model, const FlatLayout& layout,
                                              std::span<const float> weights,
                                              std::span<const float> buffers) const {
  models::bind_parameters(model, layout, weights.data());
  models::copy_buffers_in(model, buffers);
  return evaluate(model);
}

}  // namespace capstan::training
