#include "capstan/base/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "capstan/base/check.h"

namespace capstan {
namespace {

static_assert(std::endian::native == std::endian::little, "the numbers of files are used as they are");

struct Half {
  std::uint16_t bits;
};
struct Brain {
  std::uint16_t bits;
};
struct Bool {
  std::uint8_t bits;
};

template <class T>
float float_of(T value) {
  return static_cast<float>(value);
}

float float_of(Half half) {
  const int exponent = half.bits >> 10 & 31, fraction = half.bits & 1023;
  const float size = exponent == 31  ? (fraction ? NAN : INFINITY)
                     : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                     : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return half.bits >> 15 ? -size : size;
}

float float_of(Brain brain) {
  return std::bit_cast<float>(std::uint32_t{brain.bits} << 16);
}

float float_of(Bool value) {
  return value.bits ? 1.0f : 0.0f;
}

template <class T>
std::int64_t integer_of(T value) {
  if constexpr (std::is_same_v<T, Bool>)
    return value.bits ? 1 : 0;
  else if constexpr (std::is_same_v<T, std::uint64_t>)
    return static_cast<std::int64_t>(
        std::min(value, static_cast<T>(std::numeric_limits<std::int64_t>::max())));
  else
    return value;
}

// Calls use(T()) with the stored type.
template <class Use>
auto with_type(DType type, Use use) {
  switch (type) {
    case DType::kF16:
      return use(Half{});
    case DType::kBF16:
      return use(Brain{});
    case DType::kF32:
      return use(float{});
    case DType::kF64:
      return use(double{});
    case DType::kI8:
      return use(std::int8_t{});
    case DType::kU8:
      return use(std::uint8_t{});
    case DType::kI16:
      return use(std::int16_t{});
    case DType::kU16:
      return use(std::uint16_t{});
    case DType::kI32:
      return use(std::int32_t{});
    case DType::kU32:
      return use(std::uint32_t{});
    case DType::kI64:
      return use(std::int64_t{});
    case DType::kU64:
      return use(std::uint64_t{});
    case DType::kBool:
      return use(Bool{});
  }
  CAPSTAN_CHECK(false, "the type is one of the enum");
}

template <class T, class Out, class Convert>
void convert(std::span<const std::byte> bytes, std::span<Out> out, Convert value) {
  CAPSTAN_CHECK(bytes.size() == out.size() * sizeof(T), "there are as many bytes as numbers need");
  for (std::size_t i = 0; i < out.size(); ++i) {
    T stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = value(stored);
  }
}

template <class T>
constexpr bool kInteger = std::is_integral_v<T> || std::is_same_v<T, Bool>;

}  // namespace

std::size_t bytes_of(DType type) {
  return with_type(type, [](auto stored) { return sizeof stored; });
}

bool is_integer(DType type) {
  return with_type(type, [](auto stored) { return kInteger<decltype(stored)>; });
}

void to_floats(DType type, std::span<const std::byte> bytes, std::span<float> out) {
  with_type(type, [&](auto stored) {
    convert<decltype(stored)>(bytes, out, [](auto value) { return float_of(value); });
  });
}

void to_integers(DType type, std::span<const std::byte> bytes, std::span<std::int64_t> out) {
  with_type(type, [&](auto stored) {
    using T = decltype(stored);
    if constexpr (kInteger<T>)
      convert<T>(bytes, out, [](T value) { return integer_of(value); });
    else
      CAPSTAN_CHECK(false, "the type is an integer");
  });
}

}  // namespace capstan
