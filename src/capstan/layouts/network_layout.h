#pragma once

#include <string>
#include <string_view>

#include "capstan/layout.h"
#include "capstan/layouts/networks.h"
#include "capstan/layouts/tensor_table.h"

namespace capstan::layouts {

// Parameters and buffers of a network for images of this size and this number of classes, without libtorch.
// Throws UserError for images that the network does not accept. Thread-safe.
NetworkTensors network_tensors(const NetworkInfo& network, const ImageSize& size, std::int64_t classes);

// The parameters (not the buffers) of a network for its nominal images and classes; for `bytes:N`, one tensor
// of N / 4 floats. Throws UserError for any other name. Thread-safe.
FlatLayout network_layout(const std::string& name);

}  // namespace capstan::layouts
