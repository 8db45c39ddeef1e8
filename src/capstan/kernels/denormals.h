#pragma once

namespace capstan::kernels {

// From now on, this thread reads and writes denormal numbers as zero. They would slow an optimizer pass
// several times over, and decaying momentum of idle weights produces them by the million.
void flush_denormals_on_this_thread();

}  // namespace capstan::kernels
