#pragma once

#include "capstan/cxx20.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace capstan {

enum class Split { kTrain, kTest };

// In which order an epoch visits the samples of a split.
enum class SampleOrder {
  kShuffled,  // anew in every epoch; the test split in its own order
  kColumns,   // every place of a batch visits consecutive samples, for state carried from batch to batch
  kOwn,       // that of the split, in every epoch
};

struct SplitInfo {
  // Per epoch, fewer than 2^32. A source without end states the length of what counts as an epoch.
  std::uint64_t samples = 0;
  SampleOrder order = SampleOrder::kShuffled;
};

// The samples of a batch by index, and the epoch (from 0), from which random choices follow.
struct BatchRequest {
  std::uint64_t epoch = 0;
  std::span<const std::uint32_t> samples;  // valid until the next request
};

// Returns the next request at each call; no value at the end.
using BatchSequence = std::function<std::optional<BatchRequest>()>;

}  // namespace capstan
