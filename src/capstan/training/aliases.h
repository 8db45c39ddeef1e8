#pragma once

#include <string>

#include "capstan/checkpoint/aliases.h"
#include "capstan/torch/named_tensor.h"

namespace capstan::training {

// True if the list has this tensor, under another name; the name is then added to its aliases.
bool add_alias(NamedTensors& list, const std::string& name, const at::Tensor& tensor);

// The aliases of all tensors of a task.
checkpoint::Aliases aliases_of(const NamedTensors& parameters, const NamedTensors& buffers);

}  // namespace capstan::training
