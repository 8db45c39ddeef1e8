#include "capstan/training/threads.h"

#include <algorithm>
#include <thread>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

namespace capstan::training {

int threads_per_process(int processes) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, cores / std::max(1, processes));
}

void configure_torch(int threads) {
  at::globalContext().setFlushDenormal(true);
  at::set_num_threads(threads);
}

}  // namespace capstan::training
