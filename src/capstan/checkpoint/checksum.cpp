#include "capstan/checkpoint/checksum.h"

#include <xxhash.h>

namespace capstan::checkpoint {

std::uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace capstan::checkpoint
