#pragma once

#include <cstddef>
#include <span>

namespace capstan::store {

// Floats that are initially zero and take memory only when first touched, in huge pages where the system has
// them. Movable, not copyable. Throws std::bad_alloc if the mapping fails.
class ZeroedArray {
 public:
  explicit ZeroedArray(std::size_t size);
  ~ZeroedArray();
  ZeroedArray(ZeroedArray&& other) noexcept;
  ZeroedArray& operator=(ZeroedArray&& other) noexcept;

  float* data() { return data_; }
  operator std::span<float>() { return {data_, size_}; }
  operator std::span<const float>() const { return {data_, size_}; }

 private:
  void* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  float* data_ = nullptr;  // on a huge-page boundary if at least one huge page long
  std::size_t size_ = 0;
};

}  // namespace capstan::store
