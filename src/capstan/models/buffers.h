#pragma once

#include <span>
#include <vector>

#include "capstan/base/flat_layout.h"
#include "capstan/models/model.h"

namespace capstan::models {

// A model's buffers (running means and variances, counters) as one flat array of floats.

FlatLayout buffer_layout_of(const Model& model);
std::vector<float> copy_buffers_out(const Model& model);
// `flat` is laid out by buffer_layout_of(); an empty one changes nothing.
void copy_buffers_in(Model& model, std::span<const float> flat);

}  // namespace capstan::models
