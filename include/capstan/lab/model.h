#pragma once

#include "capstan/cxx20.h"

#include <torch/nn/module.h>

namespace capstan::lab {

// The model of a plug-in: a module that maps the input of a batch to the output that the criterion takes.
// Register all parameters in the constructor.
class Model : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& input) = 0;
};

}  // namespace capstan::lab
