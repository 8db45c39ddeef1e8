#pragma once

#include <cstdint>

#include "capstan/base/ids.h"

// Messages of jobs whose servers average gradients (wire/messages.h has all others).
namespace capstan::wire {

// One bucket of an averaging job. All trainers of a job have the same buckets.
struct BucketShape {
  std::uint64_t elements = 0;
  std::uint64_t columns = 0;  // of a row, if rows are sent; 0: all elements are sent
  bool is_sparse() const { return columns > 0; }
  std::uint64_t rows() const { return is_sparse() ? elements / columns : 0; }
  friend bool operator==(const BucketShape&, const BucketShape&) = default;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.elements), v(m.columns);
  }
};

// trainer → server. Payload, unless memory is shared: the server's part of the bucket; of rows, first their
// numbers as 32-bit integers, then their values.
struct Bucket {
  WorkerId worker;
  Incarnation incarnation;
  std::uint64_t batch = 0;
  std::uint32_t bucket = 0;
  std::uint32_t first = 0;  // place of the first row of this part in the trainer's list of rows
  std::uint32_t rows = 0;   // in this part
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.worker), v(m.incarnation), v(m.batch), v(m.bucket), v(m.first), v(m.rows);
  }
};

// server → trainer: the average over all trainers of the server's part of the bucket; payload as of Bucket
struct Average {
  std::uint64_t batch = 0;
  std::uint32_t bucket = 0;
  std::uint32_t rows = 0;
  template <class V, class M>
  static void fields(V&& v, M&& m) {
    v(m.batch), v(m.bucket), v(m.rows);
  }
};

}  // namespace capstan::wire
