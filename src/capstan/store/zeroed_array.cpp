#include "capstan/store/zeroed_array.h"

#include <cstdint>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace capstan::store {
namespace {

constexpr std::size_t kHugePage = 2u << 20;

}  // namespace

ZeroedArray::ZeroedArray(std::size_t size) : size_(size) {
  if (size == 0) return;
  const std::size_t bytes = size * sizeof(float);
  const bool large = bytes >= kHugePage;
  mapping_bytes_ = large ? bytes + kHugePage : bytes;
  mapping_ = mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();

  const std::size_t past = reinterpret_cast<std::uintptr_t>(mapping_) % kHugePage;
  const std::size_t skipped = large && past != 0 ? kHugePage - past : 0;
  data_ = static_cast<float*>(mapping_) + skipped / sizeof(float);
  // Only a hint: without huge pages the array uses small ones.
  if (large) (void)madvise(data_, bytes, MADV_HUGEPAGE);
}

ZeroedArray::~ZeroedArray() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

ZeroedArray::ZeroedArray(ZeroedArray&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(std::exchange(other.mapping_bytes_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

ZeroedArray& ZeroedArray::operator=(ZeroedArray&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace capstan::store
