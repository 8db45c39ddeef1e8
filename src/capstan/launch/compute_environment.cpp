#include "capstan/launch/compute_environment.h"

#include <cstdlib>

namespace capstan::launch {
namespace {

bool set(const char* name, const char* value) {
  return !std::getenv(name) && ::setenv(name, value, /*overwrite=*/0) == 0;
}

}  // namespace

bool prepare_compute_environment() {
  bool changed = set("OMP_WAIT_POLICY", "passive");
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_is("intel")) return changed;  // OpenBLAS detects others correctly
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx512 || avx2) changed |= set("OPENBLAS_CORETYPE", avx512 ? "SkylakeX" : "Haswell");
#endif
  return changed;
}

}  // namespace capstan::launch
