#include "capstan/kernels/copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "capstan/kernels/copy.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "capstan/base/check.h"

HWY_BEFORE_NAMESPACE();
namespace capstan::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Number of elements before the first vector boundary, where streaming stores may begin.
std::size_t elements_to_boundary(const float* p, std::size_t vector_bytes) {
  const std::size_t past = reinterpret_cast<std::uintptr_t>(p) % vector_bytes;
  return past == 0 ? 0 : (vector_bytes - past) / sizeof(float);
}

void stream_copy(const float* from, float* to, std::size_t count) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = std::min(count, elements_to_boundary(to, lanes * sizeof(float)));
  std::memcpy(to, from, i * sizeof(float));
  for (; i + lanes <= count; i += lanes) hn::Stream(hn::LoadU(d, from + i), d, to + i);
  std::memcpy(to + i, from + i, (count - i) * sizeof(float));
  hwy::FlushStream();
}

void stream_fill(float* to, std::size_t count, float value) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = std::min(count, elements_to_boundary(to, lanes * sizeof(float)));
  std::fill_n(to, i, value);
  for (; i + lanes <= count; i += lanes) hn::Stream(hn::Set(d, value), d, to + i);
  std::fill_n(to + i, count - i, value);
  hwy::FlushStream();
}

void cached_fill(float* to, std::size_t count, float value) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  // Aligned stores cover whole cache lines.
  std::size_t i = std::min(count, elements_to_boundary(to, lanes * sizeof(float)));
  std::fill_n(to, i, value);
  for (; i + lanes <= count; i += lanes) hn::Store(hn::Set(d, value), d, to + i);
  std::fill_n(to + i, count - i, value);
}

}  // namespace capstan::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::kernels {

HWY_EXPORT(stream_copy);
HWY_EXPORT(stream_fill);
HWY_EXPORT(cached_fill);

void copy(std::span<const float> from, std::span<float> to, Stores stores) {
  CAPSTAN_CHECK(to.size() >= from.size(), "the destination is at least as long as the source");
  if (from.empty()) return;
  if (stores == Stores::kStreaming)
    HWY_DYNAMIC_DISPATCH(stream_copy)(from.data(), to.data(), from.size());
  else
    std::memcpy(to.data(), from.data(), from.size_bytes());
}

void fill(std::span<float> to, float value) {
  // Measured: below this size, a reader on another core is faster after cached stores.
  constexpr std::size_t kLargeBytes = 32u << 20;
  if (to.size_bytes() >= kLargeBytes)
    HWY_DYNAMIC_DISPATCH(stream_fill)(to.data(), to.size(), value);
  else
    HWY_DYNAMIC_DISPATCH(cached_fill)(to.data(), to.size(), value);
}

}  // namespace capstan::kernels
#endif
