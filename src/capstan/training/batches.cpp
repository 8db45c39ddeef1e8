#include "capstan/training/batches.h"

#include <algorithm>
#include <numeric>

#include "capstan/base/time.h"
#include "capstan/training/task_errors.h"

namespace capstan::training {
namespace {

BatchSequence steps_of(data::Sampler& sampler, std::uint64_t first, std::uint64_t end) {
  return [&sampler, step = first, end]() mutable -> std::optional<BatchRequest> {
    if (step >= end) return {};
    const auto place = sampler.place(step++);
    return BatchRequest{place.epoch, sampler.batch(place.epoch, place.step)};
  };
}

BatchSequence in_batches(std::span<const std::uint32_t> order, std::size_t size) {
  return [order, size, first = std::size_t{0}]() mutable -> std::optional<BatchRequest> {
    if (first >= order.size()) return {};
    const auto samples = order.subspan(first, std::min(size, order.size() - first));
    first += samples.size();
    return BatchRequest{0, samples};
  };
}

}  // namespace

Batches::Batches(Task& task, data::Sampler& sampler, std::uint64_t first, std::uint64_t end, unsigned threads)
    : stream_(task.stream(Split::kTrain, steps_of(sampler, first, end), threads)) {}

Batches::Batches(Task& task, std::uint64_t size, unsigned threads) {
  const auto test = task.split(Split::kTest);
  order_.resize(test.samples);
  std::iota(order_.begin(), order_.end(), 0u);
  if (test.order == SampleOrder::kColumns) order_ = data::in_columns(order_, size);
  stream_ = task.stream(Split::kTest, in_batches(order_, size), threads);
}

Batch Batches::next() {
  const auto start = SteadyClock::now();
  try {
    auto batch = stream_->next();
    wait_seconds_ = seconds(SteadyClock::now() - start);
    return batch;
  } catch (...) {
    rethrow_from_task("batch()");
  }
}

}  // namespace capstan::training
