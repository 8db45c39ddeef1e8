#include "capstan/training/dataset_task.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "capstan/base/check.h"
#include "capstan/base/text.h"
#include "capstan/training/loader.h"

namespace capstan::training {
namespace {

class LoadedStream final : public BatchStream {
 public:
  LoadedStream(const data::SampleSource& source, unsigned threads, BatchSequence sequence)
      : loader_(source, threads, std::move(sequence)) {}
  Batch next() override { return loader_.next(); }

 private:
  Loader loader_;
};

}  // namespace

DatasetTask::DatasetTask(data::Dataset dataset) : dataset_(std::move(dataset)) {}

const data::SampleSource& DatasetTask::source(Split split) const {
  const auto& source = split == Split::kTrain ? dataset_.train : dataset_.test;
  CAPSTAN_CHECK(source, "this split was loaded");
  return *source;
}

SplitInfo DatasetTask::split(Split split) const {
  if (split == Split::kTrain && !dataset_.train) return {};
  return {source(split).count()};
}

Batch DatasetTask::batch(Split split, const BatchRequest& request) {
  return gather(source(split), request.samples, request.epoch);
}

std::unique_ptr<BatchStream> DatasetTask::stream(Split split, BatchSequence sequence, unsigned threads) {
  return std::make_unique<LoadedStream>(source(split), threads, std::move(sequence));
}

// At most 256, and fewer large samples, since several batches are in memory at once.
std::uint64_t DatasetTask::evaluation_batch() const {
  constexpr std::size_t kMost = 256, kMostFloats = std::size_t{8} << 20;
  return std::clamp<std::size_t>(kMostFloats / shape().elements(), 1, kMost);
}

std::vector<std::string> DatasetTask::warnings(Split split) const {
  const auto unreadable = source(split).unreadable();
  if (unreadable.images == 0) return {};
  return {fmt::format("{} could not be read (replaced by others of the same class); first: {}",
                      counted(unreadable.images, split == Split::kTrain ? "training image" : "test image"),
                      unreadable.first)};
}

}  // namespace capstan::training
