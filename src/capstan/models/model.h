#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "capstan/torch/named_tensor.h"

namespace capstan::models {

// A network with its parameters and buffers. Not thread-safe.
class Model {
 public:
  virtual ~Model() = default;

  // Maps NxCxHxW images, channels-last in memory, to N x classes logits.
  virtual at::Tensor forward(const at::Tensor& images) = 0;

  // The training objective: the mean cross-entropy and, in training mode, the weighted one of each auxiliary
  // head. Labels are N 64-bit integers.
  virtual at::Tensor loss(const at::Tensor& images, const at::Tensor& labels);

  // In the order in which the network registers them. The handles are the network's own tensors, not copies.
  // Buffers are 32-bit floats, except num_batches_tracked, a 64-bit integer.
  virtual const NamedTensors& parameters() const = 0;
  virtual const NamedTensors& buffers() const = 0;

  // Training mode (as after construction) or evaluation mode.
  virtual void train(bool on) = 0;
};

}  // namespace capstan::models
