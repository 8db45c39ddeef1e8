#include "capstan/data/array_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capstan/base/check.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

// "[3, 0, 7]" for an element of an array.
std::string index_text(std::size_t element, std::span<const std::int64_t> dims) {
  std::vector<std::size_t> index(dims.size());
  for (auto d = dims.size(); d-- > 0; element /= static_cast<std::size_t>(dims[d]))
    index[d] = element % static_cast<std::size_t>(dims[d]);
  return fmt::format("[{}]", fmt::join(index, ", "));
}

template <class T>
void check_finite(const Array& array, const std::vector<T>& numbers) {
  const auto bad =
      std::ranges::find_if_not(numbers, [](T v) { return std::isfinite(static_cast<float>(v)); });
  if (bad == numbers.end()) return;
  throw UserError(fmt::format("{}: the value at {} is {}, not a finite 32-bit float", array.place,
                              index_text(static_cast<std::size_t>(bad - numbers.begin()), array.dims), *bad));
}

template <class T>
std::vector<double> widened(std::span<const std::byte> bytes) {
  std::vector<double> out(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < out.size(); ++i) {
    T stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<double>(stored);
  }
  return out;
}

std::vector<double> widened(const Array& array) {
  switch (array.type) {
    case DType::kF64:
      return widened<double>(array.bytes);
    case DType::kI32:
      return widened<std::int32_t>(array.bytes);
    case DType::kU32:
      return widened<std::uint32_t>(array.bytes);
    case DType::kI64:
      return widened<std::int64_t>(array.bytes);
    case DType::kU64:
      return widened<std::uint64_t>(array.bytes);
    default:
      CAPSTAN_CHECK(false, "the type does not fit floats");
  }
}

}  // namespace

bool fits_floats(DType type) {
  return type != DType::kF64 && !(is_integer(type) && bytes_of(type) >= 4);
}

std::vector<float> floats_of(const Array& array) {
  std::vector<float> out(array.bytes.size() / bytes_of(array.type));
  to_floats(array.type, array.bytes, out);
  check_finite(array, out);
  return out;
}

std::vector<double> doubles_of(const Array& array) {
  auto out = widened(array);
  check_finite(array, out);
  return out;
}

}  // namespace capstan::data
