#include "capstan/training/threads.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

namespace capstan::training {

void configure_torch(int threads) {
  at::globalContext().setFlushDenormal(true);
  at::set_num_threads(threads);
}

}  // namespace capstan::training
