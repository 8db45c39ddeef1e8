#include "capstan/averaging/buckets.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "capstan/placement/shards.h"

namespace capstan::averaging {
namespace {

constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 34;  // of all buckets
constexpr std::size_t kMaxBuckets = 4096;
constexpr std::size_t kPage = placement::kBoundary;  // of floats

std::size_t whole_pages(std::size_t elements) {
  return (elements + kPage - 1) / kPage * kPage;
}

}  // namespace

Status check_shapes(const std::vector<Shape>& shapes) {
  if (shapes.empty()) return Status::malformed("a trainer without buckets");
  if (shapes.size() > kMaxBuckets)
    return Status::malformed(fmt::format("{} buckets; at most {} are allowed", shapes.size(), kMaxBuckets));
  std::uint64_t left = kMaxElements;
  for (std::size_t b = 0; b < shapes.size(); ++b) {
    const auto& shape = shapes[b];
    if (shape.elements == 0 || shape.elements > left)
      return Status::malformed(fmt::format("bucket {} has an impossible size", b));
    left -= shape.elements;
    if (shape.is_sparse() &&
        (shape.elements % shape.columns != 0 || shape.rows() > std::numeric_limits<std::uint32_t>::max()))
      return Status::malformed(fmt::format("bucket {} has impossible rows", b));
  }
  return Status::ok();
}

Range part_of(const Shape& shape, std::uint32_t servers, std::uint32_t server) {
  if (!shape.is_sparse()) return placement::split(shape.elements, servers)[server];
  return {shape.rows() * server / servers, shape.rows() * (server + 1) / servers};
}

Shape shape_of(const Shape& whole, Range part) {
  return {part.size() * (whole.is_sparse() ? whole.columns : 1), whole.columns};
}

bool are_rows_of(std::span<const std::uint32_t> rows, Range range) {
  if (rows.empty()) return true;
  return rows.front() >= range.begin && rows.back() < range.end &&
         std::ranges::adjacent_find(rows, std::ranges::greater_equal{}) == rows.end();
}

ArenaLayout::ArenaLayout(const std::vector<Shape>& shapes) {
  for (const auto& shape : shapes) {
    const auto values = size_ + whole_pages(shape.rows());
    places_.push_back({shape, size_, values});
    size_ = values + whole_pages(shape.elements);
  }
  size_ = std::max(size_, kPage);
}

std::span<std::uint32_t> ArenaLayout::rows(std::span<float> arena, std::size_t bucket) const {
  const auto& place = places_[bucket];
  return {reinterpret_cast<std::uint32_t*>(arena.data() + place.rows), place.shape.rows()};
}

std::span<float> ArenaLayout::values(std::span<float> arena, std::size_t bucket) const {
  const auto& place = places_[bucket];
  return arena.subspan(place.values, place.shape.elements);
}

}  // namespace capstan::averaging
