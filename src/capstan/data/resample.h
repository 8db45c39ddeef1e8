#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "capstan/data/picture.h"

namespace capstan::data {

// Normalises a channel's level v to v · factor + offset.
struct Normalisation {
  std::array<float, 3> factor;
  std::array<float, 3> offset;
};

// The part of an image that is rendered, in pixels of the stored image.
struct View {
  double x = 0, y = 0, width = 0, height = 0;  // the rendered part
  Rect seen;                                   // pixels outside of it are not used, not even at edges
  bool mirrored = false;
};

// Scales pictures with a triangle filter (antialiased bilinear): as wide as one output pixel, or one input
// pixel where that is wider. Reuses its memory. Not thread-safe.
class Resampler {
 public:
  // Writes side · side pixels of three channels; `picture` contains the part of view.seen that the view
  // needs.
  void run(const Picture& picture, const View& view, std::int64_t side, const Normalisation& normalisation,
           float* out);

 private:
  // The inputs of each output, and their weights.
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
