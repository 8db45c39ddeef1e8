#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "capstan/data/sample_source.h"
#include "capstan/data/statistics.h"

namespace capstan::data {

// The normalised value of each of the 256 levels of one channel.
using Levels = std::array<float, 256>;

// (level / 255 - mean) / deviation.
Levels normalised_levels(double mean, double deviation);

// The levels of each of `channels` channels; level / 255 for empty statistics.
std::vector<Levels> levels_of(const Statistics& statistics, std::size_t channels);

// Normalises interleaved pixels; `levels` has one entry per channel.
void normalise(std::span<const std::uint8_t> pixels, std::span<const Levels> levels, float* out);

// Samples in memory. The inputs are bytes or floats. A byte is a level of an image and is normalised when a
// batch is gathered: a quarter of the memory, and the same floats. A reader leaves `levels` and `black`
// empty, and returns raw inputs as one of `pixels`, `values` and, if floats do not hold them exactly,
// `doubles`, which normalisation rounds to `values`.
struct Split {
  SampleShape shape;
  std::vector<std::uint8_t> pixels;  // in the order image, height, width, channel
  std::vector<Levels> levels;        // of the pixels, one per channel
  std::vector<float> values;         // as SampleSource::render() returns them, normalised
  std::vector<double> doubles;       // a reader's values instead of floats
  std::vector<float> black;          // of images of floats: a black pixel, normalised
  std::vector<std::int64_t> labels;  // 0 … classes - 1
  std::vector<float> targets;        // instead of labels

  std::size_t count() const {
    return shape.has_classes() ? labels.size() : targets.size() / shape.target_elements();
  }
  std::span<const std::uint8_t> image(std::size_t sample) const {
    return {pixels.data() + sample * shape.elements(), shape.elements()};
  }
  std::span<const float> value(std::size_t sample) const {
    return {values.data() + sample * shape.elements(), shape.elements()};
  }
};

// A reader's result: raw samples. Both have the same shape and at least one sample.
struct Splits {
  Split train;
  Split test;
};

}  // namespace capstan::data
