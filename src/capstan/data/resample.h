#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "capstan/data/picture.h"

namespace capstan::data {

// What becomes of a channel's level v: v · factor + offset.
struct Normalisation {
  std::array<float, 3> factor;
  std::array<float, 3> offset;
};

// Which part of an image becomes which output, in pixels of the image as it is stored.
struct View {
  double x = 0, y = 0, width = 0, height = 0;  // what is shown
  Rect seen;                                   // pixels outside of it do not count, not even for the edges
  bool mirrored = false;
};

// Scales pictures with a triangle filter that is as wide as one output pixel, or as one input pixel where
// that is wider: no aliasing. Keeps its memory. Not thread-safe.
class Resampler {
 public:
  // Writes side · side pixels of three channels; `picture` holds all of view.seen that view needs.
  void run(const Picture& picture, const View& view, std::int64_t side, const Normalisation& normalisation,
           float* out);

 private:
  // Which inputs make one output, and how much of each.
  struct Taps {
    std::vector<std::int32_t> first;
    std::vector<std::int32_t> count;
    std::vector<float> weights;  // `most` for each output
    std::int32_t most = 0;

    void fill(double begin, double length, std::int64_t outputs, std::int64_t low, std::int64_t high);
  };

  Taps across_, down_;
  std::vector<float> row_;   // one input row
  std::vector<float> rows_;  // input rows, scaled across
};

}  // namespace capstan::data
