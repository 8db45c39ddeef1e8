#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "capstan/lab/bucket_assignment.h"

namespace capstan::lab {

// Copies gradients to the memory of their buckets while the backward pass runs. From construction to
// destruction the parameters' gradients belong to this object: nothing accumulates. Not thread-safe; the
// callback runs on the thread of the backward pass.
class BucketGradients {
 public:
  // Memory of one bucket: all elements; or space for the numbers and values of all rows.
  struct Memory {
    std::span<std::uint32_t> rows;
    std::span<float> values;
  };
  // A bucket has all of its gradients; a sparse one in its first `rows` rows, whose numbers increase.
  using OnReady = std::function<void(std::size_t bucket, std::size_t rows)>;

  // The memory must outlive this object.
  BucketGradients(NamedTensors parameters, std::vector<AssignedBucket> buckets, std::vector<Memory> memory,
                  OnReady on_ready);
  BucketGradients(const BucketGradients&) = delete;
  BucketGradients& operator=(const BucketGradients&) = delete;
  ~BucketGradients();

  const Memory& memory(std::size_t bucket) const { return memory_[bucket]; }

  // Called before and after each backward pass. Parameters without a gradient get zeros, or no rows. The pass
  // throws UserError for a sparse gradient of a parameter that is not declared sparse.
  void begin();
  void finish();

 private:
  // Where a parameter's gradient goes.
  struct Place {
    std::size_t bucket = 0;
    AssignedBucket::Part part;
  };

  at::Tensor take(std::size_t parameter, const at::Tensor& gradient);
  std::size_t take_rows(std::size_t parameter, const at::Tensor& gradient);
  at::Tensor view(std::size_t parameter) const;
  void arrived(std::size_t parameter, std::size_t rows);

  const NamedTensors parameters_;  // handles
  const std::vector<AssignedBucket> buckets_;
  const std::vector<Memory> memory_;
  const OnReady on_ready_;
  std::vector<Place> places_;         // by parameter
  std::vector<unsigned> hooks_;       // by parameter
  std::vector<bool> taken_;           // by parameter
  std::vector<std::size_t> missing_;  // by bucket
};

}  // namespace capstan::lab
