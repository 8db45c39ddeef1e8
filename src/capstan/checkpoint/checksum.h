#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace capstan::checkpoint {

// XXH3, 64 bits: finds every kind of damage that happens by accident at the speed of memory.
std::uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace capstan::checkpoint
