#pragma once

#include <cstddef>

// The largest allocation of this thread since it was last set to 0.
extern thread_local std::size_t largest_allocation;
