#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "capstan/data/image_source.h"

namespace capstan::data {

// The normalised value of each of the 256 levels of one channel.
using Levels = std::array<float, 256>;

// (level / 255 - mean) / deviation.
Levels normalised_levels(double mean, double deviation);

// Normalises interleaved pixels; `levels` has one entry per channel.
void normalise(std::span<const std::uint8_t> pixels, std::span<const Levels> levels, float* out);

// Labelled images in memory. A pixel is stored as one byte and normalised when a batch is gathered: a quarter
// of the memory, and the same floats.
struct Split {
  ImageShape shape;
  std::vector<std::uint8_t> pixels;  // in the order image, height, width, channel
  std::vector<std::int64_t> labels;  // 0 … classes - 1
  std::vector<Levels> levels;        // one per channel

  std::size_t count() const { return labels.size(); }
  std::span<const std::uint8_t> image(std::size_t sample) const {
    return {pixels.data() + sample * shape.pixels(), shape.pixels()};
  }
};

// A reader's result: both have the same shape and levels, and at least one sample.
struct Splits {
  Split train;
  Split test;
};

}  // namespace capstan::data
