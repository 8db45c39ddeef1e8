#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "capstan/data/partition.h"
#include "capstan/torch/task.h"

namespace capstan::training {

// The batches of a task in sequence, and how long the loop waits for them. Use from one thread.
class Batches {
 public:
  // Steps `first` to `end` of the sampler's segment. `task` and `sampler` must outlive this object.
  Batches(Task& task, data::Sampler& sampler, std::uint64_t first, std::uint64_t end, unsigned threads);
  // The whole test split once, in batches of `size` samples.
  Batches(Task& task, std::uint64_t size, unsigned threads);

  // There must be another one. Throws UserError for data that cannot be read.
  Batch next();
  double wait_seconds() const { return wait_seconds_; }  // of the last next()

 private:
  std::vector<std::uint32_t> order_;  // of the test split
  std::unique_ptr<BatchStream> stream_;
  double wait_seconds_ = 0;
};

}  // namespace capstan::training
