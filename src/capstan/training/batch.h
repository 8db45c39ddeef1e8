#pragma once

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

#include "capstan/data/dataset.h"

namespace capstan::training {

struct Batch {
  at::Tensor images;  // NxCxHxW floats, normalised, channels-last in memory
  at::Tensor labels;  // N 64-bit integers

  std::int64_t size() const { return labels.size(0); }
};

// The samples with these indices, in this order. Thread-safe.
Batch gather(const data::Split& split, std::span<const std::uint32_t> indices);

// `count` samples from `first` on, in the split's own order.
Batch gather_run(const data::Split& split, std::size_t first, std::size_t count);

}  // namespace capstan::training
