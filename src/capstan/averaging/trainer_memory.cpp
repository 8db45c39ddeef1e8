#include "capstan/averaging/trainer_memory.h"

#include <cstring>

#include <fmt/format.h>

namespace capstan::averaging {

TrainerMemory::TrainerMemory(const std::vector<Shape>& shapes, std::vector<Range> parts)
    : shapes_(shapes),
      parts_(std::move(parts)),
      layout_(shapes),
      buffers_(shapes.size()),
      rows_(shapes.size()) {}

Status TrainerMemory::share(transport::Segment segment) {
  if (segment.size() != layout_.bytes())
    return Status::malformed(
        fmt::format("a segment of {} bytes for buckets of {} bytes", segment.size(), layout_.bytes()));
  if (!shared_) shared_ = std::move(segment);
  return Status::ok();
}

std::size_t TrainerMemory::payload_elements(const wire::Bucket& bucket) const {
  if (shared_) return 0;
  const auto& shape = shapes_[bucket.bucket];
  return shape.is_sparse() ? bucket.rows * (shape.columns + 1) : parts_[bucket.bucket].size();
}

Status TrainerMemory::check(const wire::Bucket& bucket, std::size_t payload_bytes) const {
  const auto& shape = shapes_[bucket.bucket];
  const auto most = shape.is_sparse() ? parts_[bucket.bucket].size() : 0;
  if (bucket.rows > most || std::uint64_t{bucket.first} + bucket.rows > shape.rows())
    return Status::malformed(fmt::format("bucket {} with {} rows where at most {} are possible",
                                         bucket.bucket, bucket.rows, most));
  const auto expected = payload_elements(bucket) * sizeof(float);
  if (payload_bytes != expected)
    return Status::malformed(
        fmt::format("bucket {} with a payload of {} bytes, not {}", bucket.bucket, payload_bytes, expected));
  return Status::ok();
}

// For all rows of the part, so that it never has to grow while it is in use. Not initialized: a payload fills
// what is read.
float* TrainerMemory::buffer(std::size_t bucket) {
  if (!buffers_[bucket]) {
    const auto part = shape_of(shapes_[bucket], parts_[bucket]);
    buffers_[bucket] = std::make_unique_for_overwrite<float[]>(part.rows() + part.elements);
  }
  return buffers_[bucket].get();
}

transport::MutableBytes TrainerMemory::destination(const wire::Bucket& bucket) {
  return std::as_writable_bytes(std::span(buffer(bucket.bucket), payload_elements(bucket)));
}

Result<Gradient> TrainerMemory::gradient(const wire::Bucket& bucket) {
  const auto b = bucket.bucket;
  const auto& shape = shapes_[b];
  const auto& part = parts_[b];
  if (!shape.is_sparse()) {
    if (shared_) return Gradient{{}, layout_.values(shared_.floats(), b).subspan(part.begin, part.size())};
    return Gradient{{}, {buffer(b), part.size()}};
  }
  auto& rows = rows_[b];
  rows.resize(bucket.rows);
  const void* from =
      shared_ ? static_cast<const void*>(layout_.rows(shared_.floats(), b).data() + bucket.first) : buffer(b);
  if (!rows.empty()) std::memcpy(rows.data(), from, rows.size() * sizeof(rows[0]));
  if (!are_rows_of(rows, part))
    return Status::malformed(fmt::format("bucket {} with rows that are not increasing from {} to below {}", b,
                                         part.begin, part.end));
  const auto elements = rows.size() * shape.columns;
  if (shared_)
    return Gradient{rows,
                    layout_.values(shared_.floats(), b).subspan(bucket.first * shape.columns, elements)};
  return Gradient{rows, {buffer(b) + rows.size(), elements}};
}

}  // namespace capstan::averaging
