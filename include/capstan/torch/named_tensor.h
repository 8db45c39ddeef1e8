#pragma once

#include "capstan/cxx20.h"

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace capstan {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

using NamedTensors = std::vector<NamedTensor>;

}  // namespace capstan
