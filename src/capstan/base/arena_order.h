#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace capstan {

// Tensors of four dimensions lie channels-last in a model's flat array; files have every tensor in C order of
// its shape. Both functions write as many values as the shape has; the arrays do not overlap.
void to_file_order(const std::vector<std::int64_t>& dims, std::span<const float> arena,
                   std::span<float> file);
void to_arena_order(const std::vector<std::int64_t>& dims, std::span<const float> file,
                    std::span<float> arena);

}  // namespace capstan
