#include "capstan/data/memory_source.h"

#include <utility>

#include "capstan/base/check.h"

namespace capstan::data {

MemorySource::MemorySource(Split split) : split_(std::move(split)) {
  CAPSTAN_CHECK(split_.pixels.size() == split_.count() * split_.shape.pixels(),
                "there are pixels for every label");
  CAPSTAN_CHECK(split_.levels.size() == static_cast<std::size_t>(split_.shape.channels),
                "there are levels for every channel");
}

std::unique_ptr<MemorySource> MemorySource::crop_flip(Split split, std::uint64_t seed) {
  auto source = std::make_unique<MemorySource>(std::move(split));
  source->seed_ = seed;
  return source;
}

void MemorySource::render(std::size_t sample, std::uint64_t epoch, float* out) const {
  if (!seed_) return normalise(split_.image(sample), split_.levels, out);
  auto random = random_for(*seed_, epoch, sample);
  render_shifted(split_.image(sample), draw_shift(random), out);
}

void MemorySource::render_shifted(std::span<const std::uint8_t> image, const Shift& shift, float* out) const {
  const auto& s = split_.shape;
  for (std::int64_t y = 0; y < s.height; ++y) {
    const auto from_y = y + shift.down;
    for (std::int64_t x = 0; x < s.width; ++x) {
      const auto from_x = (shift.mirrored ? s.width - 1 - x : x) + shift.right;
      const bool inside = from_x >= 0 && from_x < s.width && from_y >= 0 && from_y < s.height;
      const auto* const pixel = image.data() + (inside ? (from_y * s.width + from_x) * s.channels : 0);
      for (std::size_t c = 0; c < split_.levels.size(); ++c) *out++ = split_.levels[c][inside ? pixel[c] : 0];
    }
  }
}

}  // namespace capstan::data
