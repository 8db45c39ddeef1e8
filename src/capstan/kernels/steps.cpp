#include "capstan/kernels/steps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "capstan/kernels/steps.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "capstan/base/check.h"
#include "capstan/kernels/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace capstan::kernels::HWY_NAMESPACE {

using V = hn::Vec<Tag>;

// The gradient with L2 regularisation.
HWY_INLINE V decayed(Tag d, const float* g, V w, float weight_decay) {
  return hn::MulAdd(hn::Set(d, weight_decay), w, hn::LoadU(d, g));
}

// keep·old + intake·fresh: a moving average.
HWY_INLINE V blend(Tag d, float keep, V old, float intake, V fresh) {
  return hn::MulAdd(hn::Set(d, intake), fresh, hn::Mul(hn::Set(d, keep), old));
}

struct AddOp {
  HWY_INLINE void operator()(Tag d, const float* g, float* w) const {
    hn::StoreU(hn::Add(hn::LoadU(d, w), hn::LoadU(d, g)), d, w);
  }
};

struct BlendOp {
  float keep;
  HWY_INLINE void operator()(Tag d, const float* g, float* w) const {
    hn::StoreU(hn::MulAdd(hn::Set(d, keep), hn::LoadU(d, w), hn::LoadU(d, g)), d, w);
  }
};

struct SgdOp {
  SgdStep s;
  HWY_INLINE void operator()(Tag d, const float* g, float* w) const {
    const V old = hn::LoadU(d, w);
    const V grad = decayed(d, g, old, s.weight_decay);
    hn::StoreU(hn::NegMulAdd(hn::Set(d, s.lr), grad, old), d, w);
  }
};

template <bool kNesterov>
struct MomentumOp {
  MomentumStep s;
  HWY_INLINE void operator()(Tag d, const float* g, float* w, float* buffer) const {
    const V old = hn::LoadU(d, w);
    const V grad = decayed(d, g, old, s.weight_decay);
    const V buf = blend(d, s.momentum, hn::LoadU(d, buffer), s.intake, grad);
    hn::StoreU(buf, d, buffer);
    const V direction = kNesterov ? hn::MulAdd(hn::Set(d, s.lookahead), buf, grad) : buf;
    hn::StoreU(hn::NegMulAdd(hn::Set(d, s.lr), direction, old), d, w);
  }
};

struct AdamOp {
  AdamStep s;
  HWY_INLINE void operator()(Tag d, const float* g, float* w, float* m, float* v) const {
    const V old = hn::LoadU(d, w);
    const V grad = decayed(d, g, old, s.weight_decay);
    const V mean = blend(d, s.beta1, hn::LoadU(d, m), s.intake1, grad);
    const V square = blend(d, s.beta2, hn::LoadU(d, v), s.intake2, hn::Mul(grad, grad));
    hn::StoreU(mean, d, m);
    hn::StoreU(square, d, v);
    const V denominator = hn::MulAdd(hn::Sqrt(square), hn::Set(d, s.root_scale), hn::Set(d, s.eps));
    const V kept = hn::Mul(hn::Set(d, s.keep), old);
    hn::StoreU(hn::NegMulAdd(hn::Set(d, s.lr), hn::Div(mean, denominator), kept), d, w);
  }
};

struct AdagradOp {
  AdagradStep s;
  HWY_INLINE void operator()(Tag d, const float* g, float* w, float* sum) const {
    const V old = hn::LoadU(d, w);
    const V grad = decayed(d, g, old, s.weight_decay);
    const V total = hn::MulAdd(grad, grad, hn::LoadU(d, sum));
    hn::StoreU(total, d, sum);
    const V scaled = hn::Div(grad, hn::Add(hn::Sqrt(total), hn::Set(d, s.eps)));
    hn::StoreU(hn::NegMulAdd(hn::Set(d, s.lr), scaled, old), d, w);
  }
};

template <bool kMomentum, bool kCentered>
struct RmsPropOp {
  RmsPropStep s;
  // `rest`: the momentum buffer, then the mean, where used.
  template <class... Floats>
  HWY_INLINE void operator()(Tag d, const float* g, float* w, float* v, Floats*... rest) const {
    const V old = hn::LoadU(d, w);
    const V grad = decayed(d, g, old, s.weight_decay);
    const V square = blend(d, s.alpha, hn::LoadU(d, v), s.intake, hn::Mul(grad, grad));
    hn::StoreU(square, d, v);
    float* const more[] = {nullptr, rest...};
    V variance = square;
    if constexpr (kCentered) {
      float* mean = more[sizeof...(rest)];
      const V average = blend(d, s.alpha, hn::LoadU(d, mean), s.intake, grad);
      hn::StoreU(average, d, mean);
      variance = hn::NegMulAdd(average, average, square);
    }
    V direction = hn::Div(grad, hn::Add(hn::Sqrt(variance), hn::Set(d, s.eps)));
    if constexpr (kMomentum) {
      direction = hn::MulAdd(hn::Set(d, s.momentum), hn::LoadU(d, more[1]), direction);
      hn::StoreU(direction, d, more[1]);
    }
    hn::StoreU(hn::NegMulAdd(hn::Set(d, s.lr), direction, old), d, w);
  }
};

void add_step(std::span<const float> g, float* w) {
  for_each_vector(g.size(), AddOp{}, g.data(), w);
}

void blend_step(float keep, std::span<const float> g, float* w) {
  for_each_vector(g.size(), BlendOp{keep}, g.data(), w);
}

void sgd_step(const SgdStep& s, std::span<const float> g, float* w) {
  for_each_vector(g.size(), SgdOp{s}, g.data(), w);
}

void momentum_step(const MomentumStep& s, std::span<const float> g, float* w, float* buffer) {
  if (s.nesterov)
    for_each_vector(g.size(), MomentumOp<true>{s}, g.data(), w, buffer);
  else
    for_each_vector(g.size(), MomentumOp<false>{s}, g.data(), w, buffer);
}

void adam_step(const AdamStep& s, std::span<const float> g, float* w, float* m, float* v) {
  for_each_vector(g.size(), AdamOp{s}, g.data(), w, m, v);
}

void adagrad_step(const AdagradStep& s, std::span<const float> g, float* w, float* sum) {
  for_each_vector(g.size(), AdagradOp{s}, g.data(), w, sum);
}

void rmsprop_step(const RmsPropStep& s, std::span<const float> g, float* w, float* v, float* buffer,
                  float* mean) {
  if (buffer && mean)
    for_each_vector(g.size(), RmsPropOp<true, true>{s}, g.data(), w, v, buffer, mean);
  else if (buffer)
    for_each_vector(g.size(), RmsPropOp<true, false>{s}, g.data(), w, v, buffer);
  else if (mean)
    for_each_vector(g.size(), RmsPropOp<false, true>{s}, g.data(), w, v, mean);
  else
    for_each_vector(g.size(), RmsPropOp<false, false>{s}, g.data(), w, v);
}

}  // namespace capstan::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::kernels {
namespace {

void check_lengths(std::span<const float> gradient, std::span<float> weights) {
  CAPSTAN_CHECK(gradient.size() == weights.size(), "the gradient is as long as the weights");
}

}  // namespace

HWY_EXPORT(add_step);
HWY_EXPORT(blend_step);
HWY_EXPORT(sgd_step);
HWY_EXPORT(momentum_step);
HWY_EXPORT(adam_step);
HWY_EXPORT(adagrad_step);
HWY_EXPORT(rmsprop_step);

void add_step(std::span<const float> gradient, std::span<float> weights) {
  check_lengths(gradient, weights);
  HWY_DYNAMIC_DISPATCH(add_step)(gradient, weights.data());
}

void blend_step(float keep, std::span<const float> gradient, std::span<float> weights) {
  check_lengths(gradient, weights);
  HWY_DYNAMIC_DISPATCH(blend_step)(keep, gradient, weights.data());
}

void sgd_step(const SgdStep& step, std::span<const float> gradient, std::span<float> weights) {
  check_lengths(gradient, weights);
  HWY_DYNAMIC_DISPATCH(sgd_step)(step, gradient, weights.data());
}

void momentum_step(const MomentumStep& step, std::span<const float> gradient, std::span<float> weights,
                   float* buffer) {
  check_lengths(gradient, weights);
  HWY_DYNAMIC_DISPATCH(momentum_step)(step, gradient, weights.data(), buffer);
}

void adam_step(const AdamStep& step, std::span<const float> gradient, std::span<float> weights, float* m,
               float* v) {
  check_lengths(gradient, weights);
  HWY_DYNAMIC_DISPATCH(adam_step)(step, gradient, weights.data(), m, v);
}

void adagrad_step(const AdagradStep& step, std::span<const float> gradient, std::span<float> weights,
                  float* sum) {
  check_lengths(gradient, weights);
  HWY_DYNAMIC_DISPATCH(adagrad_step)(step, gradient, weights.data(), sum);
}

void rmsprop_step(const RmsPropStep& step, std::span<const float> gradient, std::span<float> weights,
                  float* v, float* buffer, float* mean) {
  check_lengths(gradient, weights);
  HWY_DYNAMIC_DISPATCH(rmsprop_step)(step, gradient, weights.data(), v, buffer, mean);
}

}  // namespace capstan::kernels
#endif
