#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "capstan/base/random_access_file.h"

namespace capstan::checkpoint {

// XXH3, 64 bits: detects accidental damage at memory speed.
std::uint64_t checksum(std::span<const std::byte> bytes);
// The same of a whole file, in little memory. Throws UserError that names the file if it cannot be read.
std::uint64_t checksum(const RandomAccessFile& file);

}  // namespace capstan::checkpoint
