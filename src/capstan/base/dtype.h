#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace capstan {

// The types of numbers in files of tensors and arrays, little-endian.
enum class DType { kF16, kBF16, kF32, kF64, kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64, kBool };

std::size_t bytes_of(DType type);
bool is_integer(DType type);  // also bool

// Both convert as many numbers as `out` has; `bytes` contains exactly these. A value of bool is 0 or 1.
void to_floats(DType type, std::span<const std::byte> bytes, std::span<float> out);
// Of an integer type; values of U64 that are too large become the largest integer.
void to_integers(DType type, std::span<const std::byte> bytes, std::span<std::int64_t> out);

}  // namespace capstan
