#pragma once

#include "capstan/cxx20.h"

#include <cstdint>
#include <memory>
#include <span>

#include "capstan/lab/trainer.h"

namespace capstan::lab {

// Gradients of several parameters that are sent together, or the rows of one sparse parameter.
struct Bucket {
  std::uint32_t index = 0;
  std::uint64_t batch = 0;              // steps before this one
  std::uint64_t columns = 0;            // elements of a row; 0: the bucket is dense
  std::span<const std::uint32_t> rows;  // strictly increasing
  std::span<float> values;              // may be changed before they are sent

  bool is_sparse() const { return columns > 0; }
};

// The sizes at which buckets are closed.
struct BucketSizes {
  std::uint64_t first = 1 << 20, others = 25 << 20;  // bytes
};

// Trains as PyTorch's DistributedDataParallel: gradients are collected in buckets, in the reverse order of
// the parameters, and on_bucket() is called for each as soon as its last gradient is there, while the
// backward pass goes on. When all averages have arrived, every trainer takes the same SGD step. What is left
// for derived classes is how a bucket is averaged.
class DdpTrainerBase : public Trainer {
 public:
  DdpTrainerBase(TrainerContext context, BucketSizes sizes = {});
  ~DdpTrainerBase() override;

  void prepare(Task& task) override;
  void train(Task& task) override;

 protected:
  // Calls one of the functions below, once. Runs on the thread of the backward pass.
  virtual void on_bucket(Bucket& bucket) = 0;
  // Whether on_bucket() sends buckets of this kind to servers. The same in all trainers.
  virtual bool uses_servers(bool is_sparse) const = 0;

  // Returns at once. Measures hook_future_metric,rpc_dense or rpc_sparse.
  void average_by_servers(const Bucket& bucket);
  // Returns at once. Measures hook_future_metric,gloo_dense_allreduce or gloo_sparse_allreduce.
  void average_by_allreduce(const Bucket& bucket);
  // Waits for the average. Measures hook_c10d_metric,gloo_sparse_allreduce or gloo_dense_allreduce.
  void average_by_allreduce_now(const Bucket& bucket);

 private:
  class Exchange;
  const BucketSizes sizes_;
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace capstan::lab
