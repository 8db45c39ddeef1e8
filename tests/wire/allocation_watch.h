#pragma once

#include <cstddef>

// The largest piece of memory that this thread asked for since it was last set to 0.
extern thread_local std::size_t largest_allocation;
