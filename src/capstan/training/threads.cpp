#include "capstan/training/threads.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <malloc.h>

namespace capstan::training {

void configure_torch(int threads) {
  at::globalContext().setFlushDenormal(true);
  at::set_num_threads(threads);
  // Every step frees and allocates the same arrays. If they were returned to the system, mapping and clearing
  // them again would cost ResNet-18 about 3 % of a step.
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, -1);
}

}  // namespace capstan::training
