#pragma once

#include <cstddef>
#include <span>

namespace capstan::kernels {

// How a store reaches memory: through this core's cache, or past it. Streaming saves reading the old
// contents of the destination first, and pays where the destination is large and read next by another core.
enum class Stores { kCached, kStreaming };

// Copies `from` to the start of `to`, which is at least as long and does not overlap. When it returns, the
// copy is ordered before whatever the thread stores or sends next.
void copy(std::span<const float> from, std::span<float> to, Stores stores);

// Sets every element; large arrays by streaming stores.
void fill(std::span<float> to, float value);

}  // namespace capstan::kernels
