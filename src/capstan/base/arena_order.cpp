#include "capstan/base/arena_order.h"

#include <algorithm>

#include "capstan/base/check.h"

namespace capstan {
namespace {

// Transposes `outer` matrices of rows x columns.
void transpose(std::size_t outer, std::size_t rows, std::size_t columns, const float* from, float* to) {
  for (std::size_t o = 0; o < outer; ++o, from += rows * columns, to += rows * columns) {
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
    }
  }
}

struct Sizes {
  std::size_t outer, channels, pixels;
};

Sizes sizes(const std::vector<std::int64_t>& dims) {
  return {static_cast<std::size_t>(dims[0]), static_cast<std::size_t>(dims[1]),
          static_cast<std::size_t>(dims[2] * dims[3])};
}

}  // namespace

void to_file_order(const std::vector<std::int64_t>& dims, std::span<const float> arena,
                   std::span<float> file) {
  CAPSTAN_CHECK(arena.size() == file.size(), "both arrays have the tensor's size");
  if (dims.size() != 4) {
    std::ranges::copy(arena, file.begin());
    return;
  }
  const auto [outer, channels, pixels] = sizes(dims);
  transpose(outer, pixels, channels, arena.data(), file.data());
}

void to_arena_order(const std::vector<std::int64_t>& dims, std::span<const float> file,
                    std::span<float> arena) {
  CAPSTAN_CHECK(arena.size() == file.size(), "both arrays have the tensor's size");
  if (dims.size() != 4) {
    std::ranges::copy(file, arena.begin());
    return;
  }
  const auto [outer, channels, pixels] = sizes(dims);
  transpose(outer, channels, pixels, file.data(), arena.data());
}

}  // namespace capstan
