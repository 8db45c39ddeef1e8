#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "capstan/base/flat_layout.h"
#include "capstan/models/model.h"

namespace capstan::models {

// A model in flat memory. In a flat array every tensor is dense at its offset; tensors of four dimensions are
// in channels-last order (their shape stays NCHW), because convolutions are fastest on it.

// Names and shapes of the parameters.
FlatLayout layout_of(const Model& model);

// A view of one tensor in the flat array.
at::Tensor tensor_in(const FlatLayout& layout, std::size_t tensor, float* flat);

// Makes every parameter a view of `weights` (layout.size() elements), which must outlive the model or the
// next binding. Nothing writes to `weights` through the model: they may be a read-only mapping.
void bind_parameters(Model& model, const FlatLayout& layout, const float* weights);

// Ends the binding: every parameter owns a copy of its values.
void unbind_parameters(Model& model);

// Writes the parameters' values to the flat array, and zeros to its gaps.
void copy_parameters_out(const Model& model, const FlatLayout& layout, std::span<float> flat);

}  // namespace capstan::models
