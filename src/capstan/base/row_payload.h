#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capstan/base/row_tensors.h"
#include "capstan/status.h"

namespace capstan {

// The payload of a message with rows: the dense ranges, the row numbers of each part as 32-bit integers, then
// the values of each part's rows. Between processes that share memory it has the numbers only.
struct RowPayload {
  std::span<const Range> dense;  // relative to the shard's begin
  std::vector<const RowPart*> parts;
  bool has_values = true;

  // Elements of a payload with so many rows of each part: exact without values, otherwise bounds.
  Range possible_size(std::span<const std::uint32_t> counts) const;
  // Elements of a payload with these rows of each part.
  std::uint64_t size(std::span<const std::span<const std::uint32_t>> rows) const;

  // Writes a payload from an array that begins with the shard's first element; the dense ranges only if
  // `with_dense`, otherwise their place is left as it is. `out` has size() elements.
  void pack(std::span<const std::span<const std::uint32_t>> rows, const float* from, std::span<float> out,
            bool with_dense = true) const;
  // Reads a payload from a peer: checks all of it, then writes it to an array that begins with the shard's
  // first element. Returns the rows of each part.
  Result<RowLists> unpack(std::span<const std::uint32_t> counts, std::span<const float> payload,
                          float* to) const;
};

// The parts of one phase, or all of them.
std::vector<const RowPart*> parts_of(const ShardRows& rows, std::uint32_t phase);
std::vector<const RowPart*> parts_of(const ShardRows& rows);

}  // namespace capstan
