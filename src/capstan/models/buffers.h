#pragma once

#include <span>
#include <vector>

#include "capstan/layout.h"
#include "capstan/torch/named_tensor.h"

namespace capstan::models {

// A model's buffers (running means and variances, counters) as one flat array of floats.

FlatLayout buffer_layout_of(const NamedTensors& buffers);
std::vector<float> copy_buffers_out(const NamedTensors& buffers);
// `flat` is laid out by buffer_layout_of(); an empty one changes nothing.
void copy_buffers_in(const NamedTensors& buffers, std::span<const float> flat);

}  // namespace capstan::models
