#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace capstan {

// Convert one tensor between the order of a model's flat array, where tensors of four dimensions are
// channels-last, and the order of files, where every tensor is contiguous (row-major). Both arrays have as
// many values as the shape and do not overlap.
void to_file_order(const std::vector<std::int64_t>& dims, std::span<const float> arena,
                   std::span<float> file);
void to_arena_order(const std::vector<std::int64_t>& dims, std::span<const float> file,
                    std::span<float> arena);

}  // namespace capstan
