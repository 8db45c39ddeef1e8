#pragma once

#include <optional>

#include "capstan/data/partition.h"
#include "capstan/data/prefetcher.h"
#include "capstan/training/batch.h"

namespace capstan::training {

// Gives a worker its batches in turn. Images that take work are rendered ahead by threads; those that only
// have to be looked up are gathered when asked for, since a step of a small network takes no longer than
// handing a batch from thread to thread. Use from one thread, which is also the one that asks the sequence.
class Loader {
 public:
  // `source` must outlive this. Without threads, everything is rendered when asked for.
  Loader(const data::ImageSource& source, unsigned threads, data::BatchSequence sequence);

  // The next batch of the sequence, which must have one. Its tensors may be views of memory that the next
  // call uses again. Throws UserError for an image that cannot be had.
  Batch next();
  // For how long the last next() kept its caller.
  double wait_seconds() const { return wait_seconds_; }

 private:
  Batch take();

  const data::ImageSource& source_;
  data::BatchSequence sequence_;  // where nothing is rendered ahead
  std::optional<data::Prefetcher> prefetcher_;
  double wait_seconds_ = 0;
};

// A sampler's batches from step `first`, counted over all epochs, up to `end`. `sampler` must outlive it.
data::BatchSequence batches_of(data::Sampler& sampler, std::uint64_t first, std::uint64_t end);

}  // namespace capstan::training
