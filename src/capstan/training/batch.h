#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capstan/data/sample_source.h"
#include "capstan/torch/task.h"

namespace capstan::training {

// Sizes and strides of a tensor of `samples` inputs. Those of images are explicit: with one channel
// libtorch's channels-last format is ambiguous, and convolutions would take the slower path.
struct InputLayout {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
};
InputLayout input_layout(const data::SampleShape& shape, std::int64_t samples);

// Sizes of a tensor of `samples` targets of numbers.
std::vector<std::int64_t> target_sizes(const data::SampleShape& shape, std::int64_t samples);

// The samples with these indices, in this order, as they are in `epoch`. The input has normalised floats:
// NxCxHxW, channels-last in memory, or N and the input's dimensions; the target N classes (64-bit integers),
// or floats: N and the target's dimensions. Thread-safe.
Batch gather(const data::SampleSource& source, std::span<const std::uint32_t> indices,
             std::uint64_t epoch = 0);

}  // namespace capstan::training
