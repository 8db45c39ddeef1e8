#include "capstan/training/evaluate.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "capstan/training/batch.h"

namespace capstan::training {

Evaluation evaluate(models::Model& model, const data::Split& split) {
  constexpr std::size_t kBatch = 256;
  const at::NoGradGuard no_grad;
  Evaluation result;
  std::int64_t right = 0;
  model.train(false);
  for (std::size_t first = 0; first < split.count(); first += kBatch) {
    const auto batch = gather_run(split, first, std::min(kBatch, split.count() - first));
    const auto logits = model.forward(batch.images);
    result.loss +=
        at::cross_entropy_loss(logits, batch.labels).item<float>() * static_cast<double>(batch.size());
    right += logits.argmax(1).eq(batch.labels).sum().item<std::int64_t>();
    result.samples += static_cast<std::uint64_t>(batch.size());
  }
  model.train(true);
  if (result.samples > 0) {
    result.loss /= static_cast<double>(result.samples);
    result.accuracy = static_cast<double>(right) / static_cast<double>(result.samples);
  }
  return result;
}

}  // namespace capstan::training
