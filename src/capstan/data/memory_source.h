#pragma once

#include <memory>
#include <optional>

#include "capstan/data/augment.h"
#include "capstan/data/split.h"

namespace capstan::data {

// A split's samples unchanged, or, if they are images, randomly shifted and mirrored. Thread-safe.
class MemorySource final : public SampleSource {
 public:
  explicit MemorySource(Split split);
  // Shifts and mirrors depend on `seed`, epoch and sample.
  static std::unique_ptr<MemorySource> crop_flip(Split split, std::uint64_t seed);

  const SampleShape& shape() const override { return split_.shape; }
  std::size_t count() const override { return split_.count(); }
  std::int64_t label(std::size_t sample) const override { return split_.labels[sample]; }
  void write_target(std::size_t sample, float* out) const override;
  bool is_immediate() const override { return !seed_; }
  void render(std::size_t sample, std::uint64_t epoch, float* out) const override;

 private:
  const Split split_;
  std::optional<std::uint64_t> seed_;  // of the augmentation; none without it
};

}  // namespace capstan::data
