#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "capstan/data/image_source.h"
#include "capstan/samples.h"

namespace capstan::data {

// Renders the batches of a sequence on its own threads, a few batches ahead. Use from one thread, which also
// calls the sequence. The destructor waits for at most one image per thread.
class Prefetcher {
 public:
  static constexpr std::size_t kAhead = 3;  // batches in progress or ready

  // `source` must outlive the prefetcher.
  Prefetcher(const ImageSource& source, unsigned threads, BatchSequence sequence);
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  ~Prefetcher();

  // Consecutive images, and a label for each.
  struct Rendered {
    std::span<float> images;
    std::span<const std::int64_t> labels;
  };
  // The next batch, valid until the next call; no value at the end of the sequence. Throws what rendering one
  // of its images threw; after that it must not be called again.
  std::optional<Rendered> next();

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  struct Batch {
    std::uint64_t epoch = 0;
    std::vector<std::uint32_t> samples;
    std::vector<std::int64_t> labels;
    std::unique_ptr<float[], Free> images;  // aligned to a cache line, as libtorch's own tensors
    std::size_t room = 0;                   // floats in `images`
    std::size_t begun = 0;                  // guarded by mutex_, as are the next two
    std::size_t rendered = 0;
    std::exception_ptr failure;
  };

  void order_more();
  void work();
  Batch* next_waiting();

  const ImageSource& source_;
  const BatchSequence sequence_;
  const unsigned threads_count_;

  // Used by the consumer only.
  bool exhausted_ = false;
  std::unique_ptr<Batch> taken_;                // result of the last next()
  std::vector<std::unique_ptr<Batch>> unused_;  // whose memory is reused

  std::mutex mutex_;  // guards the list and its batches' counters
  std::condition_variable more_work_;
  std::condition_variable batch_done_;
  std::deque<std::unique_ptr<Batch>> batches_;  // in the sequence's order
  std::atomic<bool> ending_ = false;            // set with the lock held
  std::vector<std::thread> threads_;            // last: they use all members above
};

}  // namespace capstan::data
