#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capstan/lab/server.h"
#include "capstan/layout.h"
#include "capstan/status.h"
#include "capstan/wire/messages.h"

// The buckets of an averaging job: their shapes, the part of each that a server holds, and their place in
// memory. Values and functions without state; thread-safe.
namespace capstan::averaging {

// All elements of a bucket, or, with columns, rows of it.
using Shape = wire::BucketShape;

using lab::Gradient;

// Fails for shapes that do not come from a correct trainer. Bounds the memory that they take.
Status check_shapes(const std::vector<Shape>& shapes);

// The part of a bucket on one of `servers`: a range of elements that begins on a memory page, or of rows.
Range part_of(const Shape& shape, std::uint32_t servers, std::uint32_t server);
// The shape of such a part.
Shape shape_of(const Shape& whole, Range part);

// Whether these numbers of rows are strictly increasing and within the range.
bool are_rows_of(std::span<const std::uint32_t> rows, Range range);

// Where the buckets of an arena are: one after the other, each with space for the numbers of all rows, then
// for all values. Both begin on memory pages.
class ArenaLayout {
 public:
  explicit ArenaLayout(const std::vector<Shape>& shapes);

  std::size_t bytes() const { return size_ * sizeof(float); }  // a multiple of the page size; not 0
  std::size_t values_offset(std::size_t bucket) const { return places_[bucket].values * sizeof(float); }
  // `arena` begins with this layout's memory.
  std::span<std::uint32_t> rows(std::span<float> arena, std::size_t bucket) const;
  std::span<float> values(std::span<float> arena, std::size_t bucket) const;

 private:
  struct Place {
    Shape shape;
    std::size_t rows, values;  // in units of 4 bytes
  };
  std::vector<Place> places_;
  std::size_t size_ = 0;
};

}  // namespace capstan::averaging
