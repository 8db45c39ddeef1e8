#include "capstan/data/prefetcher.h"

#include <algorithm>
#include <new>
#include <utility>

#include "capstan/base/check.h"

namespace capstan::data {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

Prefetcher::Prefetcher(const SampleSource& source, unsigned threads, BatchSequence sequence)
    : source_(source), sequence_(std::move(sequence)), threads_count_(threads) {
  CAPSTAN_CHECK(threads > 0, "there is at least one thread");
  order_more();
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  more_work_.notify_all();
  for (auto& thread : threads_) thread.join();
}

std::optional<Prefetcher::Rendered> Prefetcher::next() {
  if (taken_) unused_.push_back(std::move(taken_));
  order_more();
  {
    std::unique_lock lock(mutex_);
    if (batches_.empty()) return {};
    auto& first = *batches_.front();
    batch_done_.wait(lock, [&] { return first.failure || first.rendered == first.samples.size(); });
    if (first.failure) std::rethrow_exception(first.failure);
    taken_ = std::move(batches_.front());
    batches_.pop_front();
  }
  const auto count = taken_->samples.size();
  return Rendered{
      count, {taken_->inputs.get(), count * source_.shape().elements()}, taken_->labels, taken_->targets};
}

void Prefetcher::order_more() {
  // Only the consumer adds and removes batches, so their number needs no lock here.
  while (!exhausted_ && batches_.size() < kAhead) {
    const auto request = sequence_();
    exhausted_ = !request;
    if (exhausted_) return;
    std::unique_ptr<Batch> batch;
    if (unused_.empty()) {
      batch = std::make_unique<Batch>();
    } else {
      batch = std::move(unused_.back());
      unused_.pop_back();
    }
    order(*batch, *request);
    {
      const std::scoped_lock lock(mutex_);
      batches_.push_back(std::move(batch));
    }
    more_work_.notify_all();
  }
}

// Fills a batch except its inputs.
void Prefetcher::order(Batch& batch, const BatchRequest& request) const {
  const auto& shape = source_.shape();
  batch.epoch = request.epoch;
  batch.samples.assign(request.samples.begin(), request.samples.end());
  batch.labels.resize(shape.has_classes() ? batch.samples.size() : 0);
  batch.targets.resize(shape.has_classes() ? 0 : batch.samples.size() * shape.target_elements());
  for (std::size_t i = 0; i < batch.samples.size(); ++i) {
    const auto sample = batch.samples[i];
    CAPSTAN_CHECK(sample < source_.count(), "the source has this sample");
    if (shape.has_classes())
      batch.labels[i] = source_.label(sample);
    else
      source_.write_target(sample, batch.targets.data() + i * shape.target_elements());
  }
  const auto floats = batch.samples.size() * shape.elements();
  if (batch.room < floats) {
    const auto bytes = (floats * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
    batch.inputs.reset(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)));
    if (!batch.inputs) throw std::bad_alloc();
    batch.room = floats;
  }
  batch.begun = batch.rendered = 0;
}

// The first batch with samples that no thread has begun. Called with the lock held.
Prefetcher::Batch* Prefetcher::next_waiting() {
  for (const auto& batch : batches_) {
    if (!batch->failure && batch->begun < batch->samples.size()) return batch.get();
  }
  return nullptr;
}

void Prefetcher::work() {
  const auto size = source_.shape().elements();
  std::unique_lock lock(mutex_);
  for (;;) {
    Batch* batch = nullptr;
    more_work_.wait(lock, [&] { return ending_ || (batch = next_waiting()); });
    if (ending_) return;
    // A few samples at a time: fewer locks for cheap ones, and no thread finishes long after the others.
    const auto first = batch->begun;
    const auto piece = std::max<std::size_t>(1, batch->samples.size() / (4 * threads_count_));
    const auto end = std::min(first + piece, batch->samples.size());
    batch->begun = end;
    lock.unlock();
    std::exception_ptr failure;
    try {
      for (auto i = first; i < end && !ending_; ++i)
        source_.render(batch->samples[i], batch->epoch, batch->inputs.get() + i * size);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    batch->rendered += end - first;
    if (failure) batch->failure = failure;
    if (batch->failure || batch->rendered == batch->samples.size()) batch_done_.notify_one();
  }
}

}  // namespace capstan::data
