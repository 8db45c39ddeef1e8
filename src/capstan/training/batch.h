#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "capstan/data/image_source.h"
#include "capstan/torch/task.h"

namespace capstan::training {

// Explicit strides: with one channel libtorch's channels-last format is ambiguous, and convolutions would
// take the slower path.
std::array<std::int64_t, 4> channels_last_strides(const data::ImageShape& shape);

// The samples with these indices, in this order, as they are in `epoch`. The input is NxCxHxW normalised
// floats, channels-last in memory; the target N labels, 64-bit integers. Thread-safe.
Batch gather(const data::ImageSource& source, std::span<const std::uint32_t> indices,
             std::uint64_t epoch = 0);

}  // namespace capstan::training
