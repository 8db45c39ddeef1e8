#include "capstan/layout.h"

#include <algorithm>

#include <fmt/format.h>

#include "capstan/base/check.h"

namespace capstan {

std::uint64_t TensorShape::elements() const {
  std::uint64_t n = 1;
  for (auto d : dims) n *= static_cast<std::uint64_t>(d);
  return n;
}

FlatLayout::FlatLayout(std::vector<TensorShape> tensors) : tensors_(std::move(tensors)) {
  offsets_.reserve(tensors_.size());
  for (const auto& t : tensors_) {
    offsets_.push_back(size_);
    parameters_ += t.elements();
    size_ += (t.elements() + kAlignment - 1) / kAlignment * kAlignment;
  }
}

Range FlatLayout::range(std::size_t tensor) const {
  CAPSTAN_CHECK(tensor < tensors_.size(), "the layout has this tensor");
  return {offsets_[tensor], offsets_[tensor] + tensors_[tensor].elements()};
}

std::optional<std::size_t> FlatLayout::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &TensorShape::name);
  if (found == tensors_.end()) return {};
  return static_cast<std::size_t>(found - tensors_.begin());
}

std::string FlatLayout::difference(const FlatLayout& other) const {
  const auto common = std::min(tensors_.size(), other.tensors_.size());
  for (std::size_t i = 0; i < common; ++i) {
    const auto &a = tensors_[i], &b = other.tensors_[i];
    if (a.name != b.name) return fmt::format("tensor {} is {} here and {} there", i, a.name, b.name);
    if (a.dims != b.dims) {
      return fmt::format("tensor {} is {} here and {} there", a.name, shape_text(a.dims), shape_text(b.dims));
    }
    if (a.sparse != b.sparse) {
      const auto text = [](bool sparse) { return sparse ? "sparse" : "dense"; };
      return fmt::format("tensor {} has {} gradients here and {} ones there", a.name, text(a.sparse),
                         text(b.sparse));
    }
  }
  if (tensors_.size() != other.tensors_.size()) {
    return fmt::format("{} tensors here and {} there", tensors_.size(), other.tensors_.size());
  }
  return {};
}

std::string shape_text(const std::vector<std::int64_t>& dims) {
  return dims.empty() ? "scalar" : fmt::format("{}", fmt::join(dims, "x"));
}

}  // namespace capstan
