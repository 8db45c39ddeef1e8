#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "capstan/data/image_source.h"

namespace capstan::data {

// What a network sees for each of the 256 levels of one channel.
using Levels = std::array<float, 256>;

// (level / 255 - mean) / deviation.
Levels normalised_levels(double mean, double deviation);

// Writes what a network sees of interleaved pixels, `levels` being one for each channel.
void normalise(std::span<const std::uint8_t> pixels, std::span<const Levels> levels, float* out);

// Labelled images in memory. A pixel is kept as one byte and normalised when a batch is gathered: a
// quarter of the memory, and the same floats.
struct Split {
  ImageShape shape;
  std::vector<std::uint8_t> pixels;  // one image after the other; within one height, width, channel
  std::vector<std::int64_t> labels;  // 0 … classes - 1
  std::vector<Levels> levels;        // one per channel

  std::size_t count() const { return labels.size(); }
  std::span<const std::uint8_t> image(std::size_t sample) const {
    return {pixels.data() + sample * shape.pixels(), shape.pixels()};
  }
};

// What a reader returns: both of the same shape and levels, with at least one sample each.
struct Splits {
  Split train;
  Split test;
};

}  // namespace capstan::data
