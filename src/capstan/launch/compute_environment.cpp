#include "capstan/launch/compute_environment.h"

#include <cstdlib>

namespace capstan::launch {

void prepare_compute_environment() {
  ::setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_is("intel")) return;  // OpenBLAS detects others correctly
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx512 || avx2) ::setenv("OPENBLAS_CORETYPE", avx512 ? "SkylakeX" : "Haswell", /*overwrite=*/0);
#endif
}

}  // namespace capstan::launch
