#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "capstan/layout.h"
#include "capstan/transport/segment.h"

namespace capstan::client {

// The flat weights of a model at one fixed address. Owned by a client.
class WeightsArena {
 public:
  // Maps the servers' segments side by side, read-only; ranges without a segment are memory of this process.
  static std::unique_ptr<WeightsArena> of_server_segments(std::uint64_t elements);
  // A segment of this process that servers of this host write to.
  static std::unique_ptr<WeightsArena> own_segment(std::uint64_t elements);
  ~WeightsArena();

  std::span<const float> floats() const { return {base_, elements_}; }
  // The destination of a server's weights; empty if its segment is mapped there, which may not be written.
  std::span<float> receivable(Range range);
  Status lay(Range range, transport::Segment segment);
  const transport::Segment* segment() const { return own_ ? &own_ : nullptr; }

 private:
  WeightsArena() = default;

  std::uint64_t elements_ = 0;
  float* base_ = nullptr;
  std::size_t reserved_bytes_ = 0;  // of this object's mapping; 0 with an own segment
  transport::Segment own_;
  std::vector<std::pair<Range, transport::Segment>> laid_;
};

}  // namespace capstan::client
