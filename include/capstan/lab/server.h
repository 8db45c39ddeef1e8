#pragma once

#include "capstan/cxx20.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "capstan/lab/configuration.h"
#include "capstan/lab/metrics_logger.h"
#include "capstan/layout.h"

namespace capstan::server {
class Pool;
}

namespace capstan::lab {

// A gradient, or an average, of a bucket or of a server's part of it. The numbers of rows are those of the
// whole bucket, strictly increasing; a dense bucket has none.
struct Gradient {
  std::span<const std::uint32_t> rows;
  std::span<const float> values;

  std::size_t bytes() const { return rows.size_bytes() + values.size_bytes(); }
};

// One server's part of one bucket in the current batch. Used by one thread at a time: that of the server's
// calls.
class Slot {
 public:
  struct Place {
    std::uint32_t bucket = 0;
    std::uint32_t trainers = 1;
    Range part;                     // elements, or rows, of the whole bucket
    std::uint64_t elements = 0;     // of the part
    std::uint64_t columns = 0;      // elements of a row; 0: the bucket is dense
    std::span<std::uint32_t> rows;  // memory of the average
    std::span<float> values;
  };
  // The memory and the pool belong to the caller.
  Slot(const Place& place, server::Pool& pool) : place_(place), pool_(pool) {}

  std::uint32_t bucket() const { return place_.bucket; }
  std::uint64_t batch() const { return batch_; }
  std::uint32_t trainers() const { return place_.trainers; }
  bool is_sparse() const { return place_.columns > 0; }
  Range part() const { return place_.part; }
  std::uint64_t elements() const { return place_.elements; }
  std::uint64_t columns() const { return place_.columns; }
  std::uint32_t arrived() const { return arrived_; }  // gradients of this batch, with the current one
  bool is_complete() const { return arrived_ == place_.trainers; }

  // Where average() writes: all elements; or all rows of the part, of which the first set_rows() count.
  std::span<float> values() const { return place_.values; }
  std::span<std::uint32_t> rows() const { return place_.rows; }
  void set_rows(std::size_t count) { united_ = count; }
  // The average: valid after average() until the next batch is complete.
  Gradient result() const {
    return is_sparse() ? Gradient{place_.rows.first(united_), place_.values.first(united_ * place_.columns)}
                       : Gradient{{}, place_.values};
  }

  // For Capstan's own servers: threads for their loops.
  server::Pool& pool() const { return pool_; }
  // Called before each gradient.
  void arrive(std::uint64_t batch, bool is_first) {
    batch_ = batch;
    arrived_ = is_first ? 1 : arrived_ + 1;
  }

 private:
  const Place place_;
  server::Pool& pool_;
  std::uint64_t batch_ = 0;
  std::uint32_t arrived_ = 0;
  std::size_t united_ = 0;
};

// The arithmetic of an averaging server, which holds no parameters: trainers send buckets of gradients, and
// each gets the answer that this class computes. For each bucket of a batch, process_gradient() is called
// once per trainer, in the order of arrival, then average() once. Calls are made one at a time, on a thread
// of the server. An exception ends the run.
class Server {
 public:
  virtual ~Server() = default;

  // A gradient has arrived. Its memory is valid and unchanged until average() of this batch has returned.
  virtual void process_gradient(Slot& slot, std::uint32_t trainer, const Gradient& gradient) = 0;
  // All gradients have arrived: writes slot.values() and, if the bucket is sparse, slot.rows().
  virtual void average(Slot& slot) = 0;
  // Forgets everything. Called between two runs.
  virtual void reset_state() {}
  // How many elements process_gradient() touches for the gradient that arrives as number `arrival`, from 1.
  // The server calls it on the thread of its event loop if these are few.
  virtual std::size_t work(const Slot& slot, std::uint32_t /*arrival*/) const { return slot.elements(); }

  // Set before the first run.
  void set_metrics(MetricsLogger* metrics) { metrics_ = metrics; }

 protected:
  // Measure a part of the server's work: it appears in the results as TYPE,NAME.
  void record_start(std::string_view type, MetricKey key, std::string_view name) const {
    if (metrics_) metrics_->record_start(type, key, name);
  }
  void record_end(std::string_view type, MetricKey key) const {
    if (metrics_) metrics_->record_end(type, key);
  }

 private:
  MetricsLogger* metrics_ = nullptr;
};

}  // namespace capstan::lab
