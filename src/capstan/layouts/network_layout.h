#pragma once

#include <span>
#include <string>
#include <string_view>

#include "capstan/base/flat_layout.h"

namespace capstan::layouts {

// The names network_layout() knows, `bytes:N` left out.
std::span<const std::string_view> network_names();

// Names and shapes of a network's parameters in the network's own order, buffers left out, without
// libtorch: `lenet` (10 classes), `resnet18`, `resnet50`, `vgg16` (as torchvision's, 1000 classes), or
// `bytes:N`, one tensor of N / 4 floats. Throws UserError for any other name. Thread-safe.
FlatLayout network_layout(const std::string& name);

}  // namespace capstan::layouts
