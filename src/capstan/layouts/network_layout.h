#pragma once

#include <string>
#include <string_view>

#include "capstan/base/flat_layout.h"
#include "capstan/layouts/networks.h"
#include "capstan/layouts/tensor_table.h"

namespace capstan::layouts {

// Parameters and buffers of a network for so many classes and images of this size, without libtorch. Throws
// UserError where the images do not fit. Thread-safe.
NetworkTensors network_tensors(const NetworkInfo& network, const ImageSize& size, std::int64_t classes);

// The parameters of a network for the images and classes it was made for, buffers left out; or, for
// `bytes:N`, one tensor of N / 4 floats. Throws UserError for any other name. Thread-safe.
FlatLayout network_layout(const std::string& name);

}  // namespace capstan::layouts
