// Per-target header: compiled once for each Highway target that includes it.
#if defined(CAPSTAN_KERNELS_VECTOR_LOOP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CAPSTAN_KERNELS_VECTOR_LOOP_INL_H_
#undef CAPSTAN_KERNELS_VECTOR_LOOP_INL_H_
#else
#define CAPSTAN_KERNELS_VECTOR_LOOP_INL_H_
#endif

#include <cstddef>
#include <cstring>
#include <utility>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace capstan::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;

HWY_INLINE void store_back(float* to, const float* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}
HWY_INLINE void store_back(const float*, const float*, std::size_t) {}

// Processes the elements after the last whole vector in padded copies.
template <class Op, std::size_t... K, class... Floats>
HWY_INLINE void run_tail(std::size_t count, Op op, std::index_sequence<K...>, Floats*... arrays) {
  struct Padded {
    HWY_ALIGN_MAX float lanes[hn::MaxLanes(Tag())] = {};
  };
  const std::size_t bytes = count * sizeof(float);
  Padded copies[sizeof...(arrays)];
  (std::memcpy(copies[K].lanes, arrays, bytes), ...);
  op(Tag(), copies[K].lanes...);
  (store_back(arrays, copies[K].lanes, bytes), ...);
}

// Runs op(tag, arrays...) on one vector of each array at a time; op writes only to the vectors of non-const
// arrays. The last elements are processed as a padded vector, so an element's result does not depend on its
// position.
template <class Op, class... Floats>
HWY_INLINE void for_each_vector(std::size_t count, Op op, Floats* HWY_RESTRICT... arrays) {
  const Tag d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) op(d, (arrays + i)...);
  if (i < count) run_tail(count - i, op, std::index_sequence_for<Floats...>(), (arrays + i)...);
}

}  // namespace capstan::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
