#pragma once

namespace capstan::kernels {

// From now on, the calling thread reads and writes denormal numbers as zero. Denormals slow an optimizer pass
// down several times, and the decaying momentum of weights without gradients produces millions of them.
void flush_denormals_on_this_thread();

}  // namespace capstan::kernels
