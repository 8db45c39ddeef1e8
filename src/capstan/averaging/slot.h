#pragma once

#include <cstdint>
#include <span>

#include "capstan/averaging/buckets.h"
#include "capstan/server/pool.h"

namespace capstan::averaging {

// One server's part of one bucket in the current batch, as a rule sees it. Used by one thread at a time: that
// of the rule's calls.
class Slot {
 public:
  // The result's memory and the pool belong to the caller.
  Slot(std::uint32_t bucket, const Shape& shape, Range part, std::uint32_t trainers,
       std::span<std::uint32_t> rows, std::span<float> values, server::Pool& pool)
      : bucket_(bucket),
        shape_(shape),
        part_(part),
        trainers_(trainers),
        rows_(rows),
        values_(values),
        pool_(pool) {}

  std::uint32_t bucket() const { return bucket_; }
  std::uint64_t batch() const { return batch_; }
  bool is_sparse() const { return shape_.is_sparse(); }
  const Shape& shape() const { return shape_; }  // of this server's part
  Range part() const { return part_; }           // elements, or rows, of the whole bucket
  std::uint32_t trainers() const { return trainers_; }
  std::uint32_t arrived() const { return arrived_; }  // gradients of this batch, with the current one
  bool is_complete() const { return arrived_ == trainers_; }

  // Where average() writes: all elements; or all rows of the part, of which the first set_rows() count.
  std::span<float> values() const { return values_; }
  std::span<std::uint32_t> rows() const { return rows_; }
  void set_rows(std::size_t count) { united_ = count; }
  // The average: valid after average() until the next batch is complete.
  Gradient result() const {
    return is_sparse() ? Gradient{rows_.first(united_), values_.first(united_ * shape_.columns)}
                       : Gradient{{}, values_};
  }
  // Threads for the rule's loops.
  server::Pool& pool() const { return pool_; }

  // Called by the executor before each gradient.
  void arrive(std::uint64_t batch, bool is_first) {
    batch_ = batch;
    arrived_ = is_first ? 1 : arrived_ + 1;
  }

 private:
  const std::uint32_t bucket_;
  const Shape shape_;
  const Range part_;
  const std::uint32_t trainers_;
  const std::span<std::uint32_t> rows_;
  const std::span<float> values_;
  server::Pool& pool_;
  std::uint64_t batch_ = 0;
  std::uint32_t arrived_ = 0;
  std::size_t united_ = 0;
};

}  // namespace capstan::averaging
