#pragma once

#include "capstan/cxx20.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capstan {

// A half-open range of elements of a flat layout.
struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
  bool contains(const Range& other) const { return begin <= other.begin && other.end <= end; }
  friend bool operator==(const Range&, const Range&) = default;
};

struct TensorShape {
  std::string name;
  std::vector<std::int64_t> dims;
  // A row tensor: of two dimensions, and a gradient has few of its rows, as an embedding's. Pushes and
  // updates have only these.
  bool sparse = false;
  std::uint64_t elements() const;
  friend bool operator==(const TensorShape&, const TensorShape&) = default;
};

// The position of every tensor of a model in one flat array of floats. Each tensor begins on a 64-byte
// boundary; the gaps hold zeros. Immutable.
class FlatLayout {
 public:
  static constexpr std::uint64_t kAlignment = 16;  // elements

  FlatLayout() = default;
  explicit FlatLayout(std::vector<TensorShape> tensors);

  const std::vector<TensorShape>& tensors() const { return tensors_; }
  std::uint64_t offset(std::size_t tensor) const { return offsets_[tensor]; }
  Range range(std::size_t tensor) const;
  // The index of the first tensor with this name.
  std::optional<std::size_t> find(std::string_view name) const;

  std::uint64_t size() const { return size_; }              // elements, gaps included
  std::uint64_t parameters() const { return parameters_; }  // elements, without gaps
  std::uint64_t bytes() const { return parameters_ * sizeof(float); }

  // The first difference to another layout, in one line; empty if the layouts are equal.
  std::string difference(const FlatLayout& other) const;

 private:
  std::vector<TensorShape> tensors_;
  std::vector<std::uint64_t> offsets_;
  std::uint64_t size_ = 0;
  std::uint64_t parameters_ = 0;
};

// "20x1x5x5"; "scalar" for no dimension.
std::string shape_text(const std::vector<std::int64_t>& dims);

}  // namespace capstan
