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
  // Its gradient is a sparse tensor, as that of torch::nn::Embedding with sparse(true): two dimensions, of
  // which a step has few rows. Only these are pushed and updated. A gradient that is dense counts as all
  // rows.
  bool sparse = false;
};

using NamedTensors = std::vector<NamedTensor>;

}  // namespace capstan
