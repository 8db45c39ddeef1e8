#pragma once

#include <memory>
#include <span>
#include <vector>

#include "capstan/base/flat_layout.h"
#include "capstan/transport/segment.h"

namespace capstan::client {

// The flat weights of a model at one fixed address, whoever provides the memory. Owned by a client.
class WeightsArena {
 public:
  // Memory into which servers' own segments are laid side by side, read-only; what no segment covers is
  // memory of this process.
  static std::unique_ptr<WeightsArena> of_server_segments(std::uint64_t elements);
  // A segment of this process, which servers of this host write.
  static std::unique_ptr<WeightsArena> own_segment(std::uint64_t elements);
  ~WeightsArena();

  std::span<const float> floats() const { return {base_, elements_}; }
  // Where a server's weights are to be received; not for ranges under a laid segment.
  std::span<float> receivable(Range range) { return {base_ + range.begin, range.size()}; }
  Status lay(Range range, transport::Segment segment);
  const transport::Segment* segment() const { return own_ ? &own_ : nullptr; }

 private:
  WeightsArena() = default;

  std::uint64_t elements_ = 0;
  float* base_ = nullptr;
  std::size_t reserved_bytes_ = 0;  // of a mapping that is ours; 0 with an own segment
  transport::Segment own_;
  std::vector<transport::Segment> laid_;
};

}  // namespace capstan::client
