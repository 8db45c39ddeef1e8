#include "capstan/data/memory_source.h"

#include <algorithm>
#include <utility>

#include "capstan/base/check.h"

namespace capstan::data {
namespace {

// Calls take(channel, index of the element or -1 outside of the image) for each element of the shifted image.
template <class Take>
void shifted(const SampleShape& shape, const Shift& shift, Take take) {
  const auto channels = shape.channels(), height = shape.height(), width = shape.width();
  for (std::int64_t y = 0; y < height; ++y) {
    const auto from_y = y + shift.down;
    for (std::int64_t x = 0; x < width; ++x) {
      const auto from_x = (shift.mirrored ? width - 1 - x : x) + shift.right;
      const bool inside = from_x >= 0 && from_x < width && from_y >= 0 && from_y < height;
      const auto pixel = (from_y * width + from_x) * channels;
      for (std::int64_t c = 0; c < channels; ++c)
        take(static_cast<std::size_t>(c), inside ? pixel + c : std::int64_t{-1});
    }
  }
}

}  // namespace

MemorySource::MemorySource(Split split) : split_(std::move(split)) {
  const auto& shape = split_.shape;
  CAPSTAN_CHECK(split_.pixels.size() + split_.values.size() == split_.count() * shape.elements(),
                "there is an input for every target");
  const auto channels = shape.is_image() ? static_cast<std::size_t>(shape.channels()) : 0;
  CAPSTAN_CHECK(split_.pixels.empty() || split_.levels.size() == channels,
                "there are levels for every channel");
}

std::unique_ptr<MemorySource> MemorySource::crop_flip(Split split, std::uint64_t seed) {
  auto source = std::make_unique<MemorySource>(std::move(split));
  const auto& made = source->split_;
  CAPSTAN_CHECK(made.shape.is_image(), "images are shifted");
  CAPSTAN_CHECK(made.values.empty() || made.black.size() == static_cast<std::size_t>(made.shape.channels()),
                "every channel has its black");
  source->seed_ = seed;
  return source;
}

void MemorySource::write_target(std::size_t sample, float* out) const {
  const auto size = split_.shape.target_elements();
  std::copy_n(split_.targets.data() + sample * size, size, out);
}

void MemorySource::render(std::size_t sample, std::uint64_t epoch, float* out) const {
  if (!seed_) {
    if (split_.values.empty()) return normalise(split_.image(sample), split_.levels, out);
    const auto from = split_.value(sample);
    std::ranges::copy(from, out);
    return;
  }
  auto random = random_for(*seed_, epoch, sample);
  const auto shift = draw_shift(random);
  if (split_.values.empty()) {
    const auto* const image = split_.image(sample).data();
    shifted(split_.shape, shift, [&](std::size_t c, std::int64_t at) {
      *out++ = split_.levels[c][at < 0 ? std::uint8_t{0} : image[at]];
    });
  } else {
    const auto* const image = split_.value(sample).data();
    shifted(split_.shape, shift,
            [&](std::size_t c, std::int64_t at) { *out++ = at < 0 ? split_.black[c] : image[at]; });
  }
}

}  // namespace capstan::data
