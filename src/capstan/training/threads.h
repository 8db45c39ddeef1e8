#pragma once

namespace capstan::training {

// Prepares libtorch in this process: `threads` for one operator, and denormals flushed to zero (they slow
// late training several times over). Memory that tensors free stays with the process. Call before the first
// tensor operation, on the thread that computes: the threads libtorch starts inherit the setting from it.
void configure_torch(int threads);

}  // namespace capstan::training
