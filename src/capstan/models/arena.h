#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "capstan/layout.h"
#include "capstan/torch/named_tensor.h"

namespace capstan::models {

// A model in flat memory. In a flat array every tensor is dense at its offset; tensors of four dimensions are
// in channels-last order (their shape stays NCHW), because convolutions are fastest on it.

// Names and shapes of the parameters.
FlatLayout layout_of(const NamedTensors& parameters);

// A view of one tensor in the flat array.
at::Tensor tensor_in(const FlatLayout& layout, std::size_t tensor, float* flat);

// Makes every parameter a view of `weights` (layout.size() elements), which must outlive the parameters or
// the next binding. Forward and backward only read: `weights` may be a read-only mapping.
void bind_parameters(const NamedTensors& parameters, const FlatLayout& layout, const float* weights);

// Ends the binding: every parameter owns a copy of its values.
void unbind_parameters(const NamedTensors& parameters);

// Writes the parameters' values to the flat array, and zeros to its gaps.
void copy_parameters_out(const NamedTensors& parameters, const FlatLayout& layout, std::span<float> flat);

}  // namespace capstan::models
