#pragma once

#include <string>

namespace capstan::cli {

// Throws UserError where this libtorch cannot compute there.
void check_device(const std::string& device);

}  // namespace capstan::cli
