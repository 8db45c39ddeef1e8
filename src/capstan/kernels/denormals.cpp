#include "capstan/kernels/denormals.h"

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace capstan::kernels {

void flush_denormals_on_this_thread() {
#if defined(__x86_64__)
  constexpr unsigned kFlushToZero = 1u << 15;
  constexpr unsigned kDenormalsAreZero = 1u << 6;
  _mm_setcsr(_mm_getcsr() | kFlushToZero | kDenormalsAreZero);
#elif defined(__aarch64__)
  constexpr std::uint64_t kFlushToZero = 1u << 24;
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control | kFlushToZero));
#endif
}

}  // namespace capstan::kernels
