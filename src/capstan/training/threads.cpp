#include "capstan/training/threads.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <malloc.h>

namespace capstan::training {

void configure_torch(int threads) {
  at::globalContext().setFlushDenormal(true);
  at::set_num_threads(threads);
  // Every step frees and takes the same arrays again. Handed back to the system in between, they would be
  // mapped and cleared anew each time, which costs ResNet-18 about 3 % of a step.
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, -1);
}

}  // namespace capstan::training
