#pragma once

namespace capstan::training {

// Configures libtorch in this process: `threads` threads per operator, denormals flushed to zero (they slow
// late training down several times), and freed tensor memory kept by the process. Call before the first
// tensor operation, on the thread that computes: libtorch's threads inherit its setting.
void configure_torch(int threads);

}  // namespace capstan::training
