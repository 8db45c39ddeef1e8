#pragma once

#include "capstan/cxx20.h"

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace capstan {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
  // Its other names, if a model has it in several places (tied weights). It is trained, sent and kept in
  // checkpoints once; the state dict of a finished run has it under every name, as PyTorch's.
  std::vector<std::string> aliases = {};
};

using NamedTensors = std::vector<NamedTensor>;

}  // namespace capstan
