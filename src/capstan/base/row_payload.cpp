#include "capstan/base/row_payload.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "capstan/base/check.h"

namespace capstan {

static_assert(sizeof(std::uint32_t) == sizeof(float), "a row number takes the place of a value");

Range RowPayload::possible_size(std::span<const std::uint32_t> counts) const {
  const std::uint64_t ranges = has_values ? total_size(dense) : 0;
  Range size{ranges, ranges};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    size.begin += counts[i];
    size.end += counts[i] * (has_values ? 1 + parts[i]->columns : 1);
  }
  return size;
}

std::uint64_t RowPayload::size(std::span<const std::span<const std::uint32_t>> rows) const {
  std::uint64_t size = has_values ? total_size(dense) : 0;
  for (std::size_t i = 0; i < parts.size(); ++i)
    size += rows[i].size() + (has_values ? parts[i]->size(rows[i]) : 0);
  return size;
}

void RowPayload::pack(std::span<const std::span<const std::uint32_t>> rows, const float* from,
                      std::span<float> out, bool with_dense) const {
  CAPSTAN_CHECK(rows.size() == parts.size() && out.size() == size(rows), "the array has the payload's size");
  auto* to = out.data();
  for (const auto& range : has_values ? dense : std::span<const Range>()) {
    if (with_dense) std::copy_n(from + range.begin, range.size(), to);
    to += range.size();
  }
  for (const auto& list : rows) {
    if (!list.empty()) std::memcpy(to, list.data(), list.size_bytes());
    to += list.size();
  }
  for (std::size_t i = 0; has_values && i < parts.size(); ++i) {
    for (const auto row : rows[i]) {
      const auto range = parts[i]->elements(row);
      to = std::copy_n(from + range.begin, range.size(), to);
    }
  }
}

Result<RowLists> RowPayload::unpack(std::span<const std::uint32_t> counts, std::span<const float> payload,
                                    float* to) const {
  CAPSTAN_CHECK(counts.size() == parts.size(), "there is a count for each part");
  const auto possible = possible_size(counts);
  if (payload.size() < possible.begin || payload.size() > possible.end)
    return Status::malformed(fmt::format("rows with a payload of {} bytes", payload.size_bytes()));
  const std::uint64_t ranges = has_values ? total_size(dense) : 0;
  auto rest = payload.subspan(ranges);
  RowLists lists(parts.size());
  std::uint64_t values = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    lists[i].resize(counts[i]);
    if (counts[i] > 0) std::memcpy(lists[i].data(), rest.data(), counts[i] * sizeof(float));
    rest = rest.subspan(counts[i]);
    if (auto bad = parts[i]->check(lists[i]); !bad.is_ok()) return bad;
    values += has_values ? parts[i]->size(lists[i]) : 0;
  }
  if (rest.size() != values)
    return Status::malformed(
        fmt::format("{} bytes of values for rows that have {}", rest.size_bytes(), values * sizeof(float)));
  if (!has_values) return lists;
  const auto* from = payload.data();
  for (const auto& range : dense) {
    std::copy_n(from, range.size(), to + range.begin);
    from += range.size();
  }
  from = rest.data();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const auto row : lists[i]) {
      const auto range = parts[i]->elements(row);
      std::copy_n(from, range.size(), to + range.begin);
      from += range.size();
    }
  }
  return lists;
}

std::vector<const RowPart*> parts_of(const ShardRows& rows, std::uint32_t phase) {
  std::vector<const RowPart*> parts;
  for (const auto i : rows.of_phase(phase)) parts.push_back(&rows.parts()[i]);
  return parts;
}

std::vector<const RowPart*> parts_of(const ShardRows& rows) {
  std::vector<const RowPart*> parts;
  for (const auto& part : rows.parts()) parts.push_back(&part);
  return parts;
}

}  // namespace capstan
