#include "capstan/kernels/weighted_sum.h"

#include <algorithm>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "capstan/kernels/weighted_sum.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "capstan/base/check.h"
#include "capstan/kernels/vector_loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace capstan::kernels::HWY_NAMESPACE {

// Adds K terms at once, so that K streams are read from memory in parallel.
template <std::size_t K, bool kFirst>
struct Sum {
  float factor[K];

  template <class... In>
  HWY_INLINE void operator()(Tag d, float* out, const float* in, const In*... more) const {
    const auto first = hn::LoadU(d, in);
    auto sum = kFirst ? hn::Mul(hn::Set(d, factor[0]), first)
                      : hn::MulAdd(hn::Set(d, factor[0]), first, hn::LoadU(d, out));
    std::size_t k = 1;
    ((sum = hn::MulAdd(hn::Set(d, factor[k++]), hn::LoadU(d, more), sum)), ...);
    hn::StoreU(sum, d, out);
  }
};

template <bool kFirst, std::size_t... K>
void add_terms(const Term* terms, std::size_t offset, std::span<float> out, std::index_sequence<K...>) {
  for_each_vector(out.size(), Sum<sizeof...(K), kFirst>{{terms[K].factor...}}, out.data(),
                  terms[K].values + offset...);
}

template <bool kFirst>
void add_group(std::span<const Term> terms, std::size_t offset, std::span<float> out) {
  switch (terms.size()) {
    case 1:
      return add_terms<kFirst>(terms.data(), offset, out, std::make_index_sequence<1>());
    case 2:
      return add_terms<kFirst>(terms.data(), offset, out, std::make_index_sequence<2>());
    case 3:
      return add_terms<kFirst>(terms.data(), offset, out, std::make_index_sequence<3>());
    default:
      return add_terms<kFirst>(terms.data(), offset, out, std::make_index_sequence<4>());
  }
}

constexpr std::size_t kGroup = 4;

void add_all(std::span<const Term> terms, std::size_t offset, std::span<float> out) {
  for (std::size_t k = 0; k < terms.size(); k += kGroup)
    add_group<false>(terms.subspan(k, std::min(kGroup, terms.size() - k)), offset, out);
}

void weighted_sum(std::span<const Term> terms, std::size_t offset, std::span<float> out) {
  const auto first = std::min(kGroup, terms.size());
  add_group<true>(terms.first(first), offset, out);
  add_all(terms.subspan(first), offset, out);
}

}  // namespace capstan::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::kernels {

HWY_EXPORT(weighted_sum);
HWY_EXPORT(add_all);

void weighted_sum(std::span<const Term> terms, std::size_t offset, std::span<float> out) {
  CAPSTAN_CHECK(!terms.empty(), "a sum has at least one term");
  HWY_DYNAMIC_DISPATCH(weighted_sum)(terms, offset, out);
}

void add_weighted(std::span<const Term> terms, std::size_t offset, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(add_all)(terms, offset, out);
}

}  // namespace capstan::kernels
#endif
