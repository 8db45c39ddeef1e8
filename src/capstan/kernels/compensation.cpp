#include "capstan/kernels/compensation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "capstan/kernels/compensation.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "capstan/kernels/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace capstan::kernels::HWY_NAMESPACE {

using V = hn::Vec<Tag>;

// g + strength·square·(w - base)
HWY_INLINE V corrected(Tag d, V strength, V g, V square, const float* w, const float* base) {
  const V moved = hn::Sub(hn::LoadU(d, w), hn::LoadU(d, base));
  return hn::MulAdd(hn::Mul(strength, square), moved, g);
}

struct CompensateOp {
  float strength;
  HWY_INLINE void operator()(Tag d, const float* gradient, const float* w, const float* base,
                             float* out) const {
    const V g = hn::LoadU(d, gradient);
    hn::StoreU(corrected(d, hn::Set(d, strength), g, hn::Mul(g, g), w, base), d, out);
  }
};

struct CompensateAdaptiveOp {
  float strength;
  HWY_INLINE void operator()(Tag d, const float* gradient, const float* w, const float* base,
                             float* mean_square, float* out) const {
    const V g = hn::LoadU(d, gradient), square = hn::Mul(g, g);
    const V mean =
        hn::MulAdd(hn::Set(d, 0.05f), square, hn::Mul(hn::Set(d, 0.95f), hn::LoadU(d, mean_square)));
    hn::StoreU(mean, d, mean_square);
    const V adapted = hn::Div(hn::Set(d, strength), hn::Sqrt(hn::Add(mean, hn::Set(d, 1e-7f))));
    hn::StoreU(corrected(d, adapted, g, square, w, base), d, out);
  }
};

void compensate(float strength, std::span<const float> gradient, const float* weights, const float* base,
                float* out) {
  for_each_vector(gradient.size(), CompensateOp{strength}, gradient.data(), weights, base, out);
}

void compensate_adaptive(float strength, std::span<const float> gradient, const float* weights,
                         const float* base, float* mean_square, float* out) {
  for_each_vector(gradient.size(), CompensateAdaptiveOp{strength}, gradient.data(), weights, base,
                  mean_square, out);
}

}  // namespace capstan::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::kernels {

HWY_EXPORT(compensate);
HWY_EXPORT(compensate_adaptive);

void compensate(float strength, std::span<const float> gradient, const float* weights, const float* base,
                float* out) {
  HWY_DYNAMIC_DISPATCH(compensate)(strength, gradient, weights, base, out);
}

void compensate_adaptive(float strength, std::span<const float> gradient, const float* weights,
                         const float* base, float* mean_square, float* out) {
  HWY_DYNAMIC_DISPATCH(compensate_adaptive)(strength, gradient, weights, base, mean_square, out);
}

}  // namespace capstan::kernels
#endif
