#pragma once

#include <cstddef>
#include <span>

namespace capstan::kernels {

// Whether stores go through this core's cache or bypass it. Streaming stores do not read the old contents of
// the destination first; they are faster where the destination is large and another core reads it next.
enum class Stores { kCached, kStreaming };

// Copies `from` to the start of `to`, which is at least as long and does not overlap. The copy is ordered
// before every later store or send of the calling thread.
void copy(std::span<const float> from, std::span<float> to, Stores stores);

// Sets every element; large arrays by streaming stores.
void fill(std::span<float> to, float value);

}  // namespace capstan::kernels
