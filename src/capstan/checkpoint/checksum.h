#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace capstan::checkpoint {

// XXH3, 64 bits: detects accidental damage at memory speed.
std::uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace capstan::checkpoint
