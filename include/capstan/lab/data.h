#pragma once

#include "capstan/cxx20.h"

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

namespace capstan::lab {

struct Sample {
  at::Tensor input, target;
};

// Samples of a plug-in. They are the same in every process. Not thread-safe.
class Data {
 public:
  virtual ~Data() = default;
  virtual std::int64_t size() const = 0;
  virtual Sample item(std::int64_t index) = 0;
  // Samples stacked along a new first dimension. By default, those of item().
  virtual Sample batch(std::span<const std::uint32_t> indices);
};

}  // namespace capstan::lab
