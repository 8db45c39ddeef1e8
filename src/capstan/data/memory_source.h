#pragma once

#include "capstan/data/split.h"

namespace capstan::data {

// A split's images as they are. Thread-safe.
class MemorySource final : public ImageSource {
 public:
  explicit MemorySource(Split split);

  const ImageShape& shape() const override { return split_.shape; }
  std::size_t count() const override { return split_.count(); }
  std::int64_t label(std::size_t sample) const override { return split_.labels[sample]; }
  bool is_immediate() const override { return true; }
  void render(std::size_t sample, std::uint64_t epoch, float* out) const override;

 private:
  const Split split_;
};

}  // namespace capstan::data
