#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "capstan/data/array_file.h"

namespace capstan::data {

// The array of a .npy file (versions 1 to 3) with these bytes. `place` names it in messages. Big-endian and
// Fortran-order arrays are converted. Throws UserError.
Array parse_npy(std::vector<std::byte> bytes, const std::string& place);

}  // namespace capstan::data
