#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

#include "capstan/data/image_source.h"

namespace capstan::training {

struct Batch {
  at::Tensor images;  // NxCxHxW floats, normalised, channels-last in memory
  at::Tensor labels;  // N 64-bit integers

  std::int64_t size() const { return labels.size(0); }
};

// Explicit strides: with one channel libtorch's channels-last format is ambiguous, and convolutions would
// take the slower path.
std::array<std::int64_t, 4> channels_last_strides(const data::ImageShape& shape);

// The samples with these indices, in this order, as they are in `epoch`. Thread-safe.
Batch gather(const data::ImageSource& source, std::span<const std::uint32_t> indices,
             std::uint64_t epoch = 0);

}  // namespace capstan::training
