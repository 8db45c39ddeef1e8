#pragma once

#include <span>

namespace capstan::kernels {

// out = g + strength·g²·(w - base): corrects a gradient g that was computed on the weights `base` for the
// current weights w. The arrays are equally long; `out` overlaps none. An element's result does not depend on
// its position. Thread-safe.
void compensate(float strength, std::span<const float> gradient, const float* weights, const float* base,
                float* out);

// The same with strength / √(mean_square + 1e-7) in place of strength, after
// mean_square = 0.95·mean_square + 0.05·g².
void compensate_adaptive(float strength, std::span<const float> gradient, const float* weights,
                         const float* base, float* mean_square, float* out);

}  // namespace capstan::kernels
