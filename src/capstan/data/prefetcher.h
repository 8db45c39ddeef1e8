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

#include "capstan/data/sample_source.h"
#include "capstan/samples.h"

namespace capstan::data {

// Renders the batches of a sequence on its own threads, a few batches ahead. Use from one thread, which also
// calls the sequence. The destructor waits for at most one sample per thread.
class Prefetcher {
 public:
  static constexpr std::size_t kAhead = 3;  // batches in progress or ready

  // `source` must outlive the prefetcher.
  Prefetcher(const SampleSource& source, unsigned threads, BatchSequence sequence);
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  ~Prefetcher();

  // Consecutive inputs, and for each a label, or a target of numbers.
  struct Rendered {
    std::size_t samples = 0;
    std::span<float> inputs;
    std::span<std::int64_t> labels;
    std::span<float> targets;
  };
  // The next batch, valid until the next call; no value at the end of the sequence. Throws what rendering one
  // of its samples threw; after that it must not be called again.
  std::optional<Rendered> next();

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  struct Batch {
    std::uint64_t epoch = 0;
    std::vector<std::uint32_t> samples;
    std::vector<std::int64_t> labels;
    std::vector<float> targets;
    std::unique_ptr<float[], Free> inputs;  // aligned to a cache line, as libtorch's own tensors
    std::size_t room = 0;                   // floats in `inputs`
    std::size_t begun = 0;                  // guarded by mutex_, as are the next two
    std::size_t rendered = 0;
    std::exception_ptr failure;
  };

  void order_more();
  void order(Batch& batch, const BatchRequest& request) const;
  void work();
  Batch* next_waiting();

  const SampleSource& source_;
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
