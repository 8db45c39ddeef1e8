#include "capstan/averaging/average_arena.h"

#include <cstring>

#include <fmt/format.h>
#include <sys/mman.h>

#include "capstan/base/check.h"
#include "capstan/placement/shards.h"
#include "capstan/user_error.h"

namespace capstan::averaging {
namespace {

constexpr std::size_t kPageBytes = placement::kBoundary * sizeof(float);

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

AverageArena::AverageArena(const std::vector<Shape>& shapes, std::uint32_t servers)
    : shapes_(shapes), servers_(servers), layout_(shapes), averages_(shapes.size()), lists_(shapes.size()) {
  void* base = ::mmap(nullptr, layout_.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    throw UserError(fmt::format("cannot allocate {} bytes for the averages", layout_.bytes()));
  base_ = static_cast<float*>(base);
  for (std::size_t b = 0; b < shapes.size(); ++b) {
    auto& parts = parts_.emplace_back();
    for (std::uint32_t s = 0; s < servers; ++s)
      parts.push_back({part_of(shapes[b], servers, s), {}, {}, {}, {}});
    if (!shapes[b].is_sparse())
      averages_[b].values = layout_.values({base_, layout_.bytes() / sizeof(float)}, b);
  }
}

AverageArena::~AverageArena() {
  ::munmap(base_, layout_.bytes());
}

Status AverageArena::map(std::uint32_t server, transport::Segment segment) {
  std::vector<Shape> held;
  for (std::size_t b = 0; b < shapes_.size(); ++b) held.push_back(shape_of(shapes_[b], part(b, server)));
  const ArenaLayout theirs(held);
  if (segment.size() != theirs.bytes())
    return Status::malformed("a server's segment does not have the size of its averages");
  for (std::size_t b = 0; b < shapes_.size(); ++b) {
    auto& mapped = parts_[b][server];
    if (mapped.range.size() == 0) continue;
    mapped.shared = {theirs.rows(segment.floats(), b), theirs.values(segment.floats(), b)};
    if (shapes_[b].is_sparse()) continue;
    auto* at = base_ + layout_.values_offset(b) / sizeof(float) + mapped.range.begin;
    const auto bytes = whole_pages(mapped.range.size() * sizeof(float));
    if (auto bad = segment.map_part(theirs.values_offset(b), bytes, at); !bad.is_ok()) return bad;
  }
  segments_.push_back(std::move(segment));
  return Status::ok();
}

std::size_t AverageArena::payload_bytes(std::size_t bucket, std::uint32_t server, std::size_t rows) const {
  const auto& part = parts_[bucket][server];
  if (!part.shared.values.empty()) return 0;
  const auto& shape = shapes_[bucket];
  return (shape.is_sparse() ? rows * (shape.columns + 1) : part.range.size()) * sizeof(float);
}

transport::MutableBytes AverageArena::receive(std::size_t bucket, std::uint32_t server, std::size_t rows) {
  auto& part = parts_[bucket][server];
  if (shapes_[bucket].is_sparse()) {
    part.received.resize(rows * (shapes_[bucket].columns + 1));
    return std::as_writable_bytes(std::span(part.received));
  }
  auto* at = base_ + layout_.values_offset(bucket) / sizeof(float) + part.range.begin;
  return std::as_writable_bytes(std::span(at, part.range.size()));
}

Status AverageArena::set_part(std::size_t bucket, std::uint32_t server, std::size_t rows) {
  const auto& shape = shapes_[bucket];
  if (!shape.is_sparse()) return Status::ok();
  auto& part = parts_[bucket][server];
  const auto elements = rows * shape.columns;
  const bool is_shared = !part.shared.values.empty();
  part.numbers.resize(rows);
  if (rows > 0)
    std::memcpy(part.numbers.data(),
                is_shared ? static_cast<const void*>(part.shared.rows.data()) : part.received.data(),
                rows * sizeof(part.numbers[0]));
  part.rows = {part.numbers, is_shared ? part.shared.values.first(elements)
                                       : std::span<const float>(part.received.data() + rows, elements)};
  if (!are_rows_of(part.numbers, part.range))
    return Status::malformed(fmt::format("server {} sent impossible rows of bucket {}", server, bucket));
  return Status::ok();
}

void AverageArena::unite(std::size_t bucket) {
  if (!shapes_[bucket].is_sparse()) return;
  if (servers_ == 1) {
    averages_[bucket] = parts_[bucket][0].rows;
    return;
  }
  auto& [rows, values] = lists_[bucket];
  rows.clear();
  values.clear();
  for (const auto& part : parts_[bucket]) {
    rows.insert(rows.end(), part.rows.rows.begin(), part.rows.rows.end());
    values.insert(values.end(), part.rows.values.begin(), part.rows.values.end());
  }
  averages_[bucket] = {rows, values};
}

}  // namespace capstan::averaging
