#pragma once

#include <cstdint>
#include <vector>

#include "capstan/lab/ddp_trainer.h"

namespace capstan::lab {

// The parameters of one bucket, and the place of each in its memory.
struct AssignedBucket {
  struct Part {
    std::size_t parameter = 0;
    std::uint64_t offset = 0, elements = 0;
  };
  std::vector<Part> parts;
  std::uint64_t elements = 0;
  std::uint64_t columns = 0;  // of a sparse parameter, which has a bucket of its own; otherwise 0

  bool is_sparse() const { return columns > 0; }
};

// Assigns parameters to buckets as PyTorch's DistributedDataParallel does: in reverse order, a bucket is
// closed when it has reached its size. A sparse parameter has a bucket of its own, at its place in the order.
std::vector<AssignedBucket> assign_buckets(const NamedTensors& parameters, const BucketSizes& sizes);

}  // namespace capstan::lab
