#pragma once

#include <optional>

#include "capstan/data/prefetcher.h"
#include "capstan/training/batch.h"

namespace capstan::training {

// Loads a worker's batches in order. Threads render samples ahead; samples that are already in memory are
// gathered on demand, since a step of a small network takes no longer than passing a batch between threads.
// Use from one thread, which also calls the sequence.
class Loader {
 public:
  // `source` must outlive the loader. With 0 threads everything is rendered on demand.
  Loader(const data::SampleSource& source, unsigned threads, BatchSequence sequence);

  // The next batch of the sequence, which must have one. Its tensors may be views of memory that the next
  // call reuses. Throws UserError for an image that cannot be read.
  Batch next();

 private:
  const data::SampleSource& source_;
  BatchSequence sequence_;  // without a prefetcher
  std::optional<data::Prefetcher> prefetcher_;
};

}  // namespace capstan::training
