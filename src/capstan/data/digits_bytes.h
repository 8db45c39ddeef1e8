#pragma once

#include <cstdint>
#include <span>

namespace capstan::data {

// The bytes of data/digits/digits.csv.gz.
std::span<const std::uint8_t> digits_bytes();

}  // namespace capstan::data
