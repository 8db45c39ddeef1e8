#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capstan::data {

// Shape of one image and number of classes.
struct ImageShape {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t classes = 0;

  std::size_t pixels() const { return static_cast<std::size_t>(channels * height * width); }
  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

// What a network sees for each of the 256 levels of one channel.
using Levels = std::array<float, 256>;

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

struct Dataset {
  Split train;
  Split test;
};

struct DatasetOptions {
  std::string name = "digits";
  std::string data_dir;    // where `mnist` looks for its files
  std::uint64_t seed = 1;  // what `synthetic` is made from
};

// The names load() knows.
std::span<const std::string_view> dataset_names();

// `digits` (in the program), `mnist` (IDX files in data_dir), or `synthetic:CxHxW:classes[:N]`. Both
// splits have the same shape and levels, and at least one sample. Throws UserError that says what is
// wrong, where, and what would be right. Thread-safe.
Dataset load(const DatasetOptions& options);

// (level / 255 - mean) / deviation.
Levels normalised_levels(double mean, double deviation);

}  // namespace capstan::data
