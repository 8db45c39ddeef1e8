#include "wire/allocation_watch.h"

#include <algorithm>
#include <cstdlib>
#include <new>

thread_local std::size_t largest_allocation = 0;

void* operator new(std::size_t size) {
  largest_allocation = std::max(largest_allocation, size);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
