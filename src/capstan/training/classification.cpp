#include "capstan/training/classification.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/cross_entropy_loss.h>
#include <fmt/format.h>

#include "capstan/base/check.h"
#include "capstan/base/text.h"
#include "capstan/training/loader.h"

namespace capstan::training {
namespace {

class ImageStream final : public BatchStream {
 public:
  ImageStream(const data::SampleSource& source, unsigned threads, BatchSequence sequence)
      : loader_(source, threads, std::move(sequence)) {}
  Batch next() override { return loader_.next(); }

 private:
  Loader loader_;
};

}  // namespace

Classification::Classification(data::Dataset dataset, std::unique_ptr<models::Model> model)
    : dataset_(std::move(dataset)), model_(std::move(model)) {}

const data::SampleSource& Classification::source(Split split) const {
  const auto& source = split == Split::kTrain ? dataset_.train : dataset_.test;
  CAPSTAN_CHECK(source, "this split was loaded");
  return *source;
}

SplitInfo Classification::split(Split split) const {
  if (split == Split::kTrain && !dataset_.train) return {};
  return {source(split).count()};
}

Batch Classification::batch(Split split, const BatchRequest& request) {
  return gather(source(split), request.samples, request.epoch);
}

std::unique_ptr<BatchStream> Classification::stream(Split split, BatchSequence sequence, unsigned threads) {
  return std::make_unique<ImageStream>(source(split), threads, std::move(sequence));
}

at::Tensor Classification::loss(std::size_t, const Batch& batch) {
  return model_->loss(batch.input, batch.target);
}

std::vector<Metric> Classification::metrics() const {
  return {{"accuracy", Metric::Better::kHigher, Metric::Of::kMean, true},
          {"loss"},
          {"top5", Metric::Better::kHigher, Metric::Of::kMean, true}};
}

std::vector<MetricSum> Classification::evaluate(const Batch& batch) {
  const auto logits = model_->forward(batch.input);
  const auto& labels = batch.target;
  const auto count = static_cast<double>(batch.samples);
  const auto loss = at::cross_entropy_loss(logits, labels).item<float>();
  const auto right = logits.argmax(1).eq(labels).sum().item<std::int64_t>();
  const auto likeliest = std::get<1>(logits.topk(std::min<std::int64_t>(5, logits.size(1)), 1));
  const auto among_five = likeliest.eq(labels.unsqueeze(1)).sum().item<std::int64_t>();
  return {
      {static_cast<double>(right), count}, {loss * count, count}, {static_cast<double>(among_five), count}};
}

// At most 256, and fewer large images, since several batches are in memory at once.
std::uint64_t Classification::evaluation_batch() const {
  constexpr std::size_t kMost = 256, kMostFloats = std::size_t{8} << 20;
  return std::clamp<std::size_t>(kMostFloats / source(Split::kTest).shape().elements(), 1, kMost);
}

std::vector<std::string> Classification::warnings(Split split) const {
  const auto unreadable = source(split).unreadable();
  if (unreadable.images == 0) return {};
  return {fmt::format("{} could not be read (replaced by others of the same class); first: {}",
                      counted(unreadable.images, split == Split::kTrain ? "training image" : "test image"),
                      unreadable.first)};
}

}  // namespace capstan::training
