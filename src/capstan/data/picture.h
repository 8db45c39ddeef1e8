#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "capstan/data/augment.h"

namespace capstan::data {

struct ImageSize {
  std::int64_t width = 0;
  std::int64_t height = 0;
};

// A decoded part of an image, possibly scaled down; four bytes per pixel: red, green, blue, unused.
struct Picture {
  std::vector<std::uint8_t> bytes;
  std::int64_t width = 0;
  std::int64_t height = 0;
  double scale = 1;       // of the whole image, 1 or smaller
  std::int64_t left = 0;  // position of the part in the scaled image
  std::int64_t top = 0;

  // Resizes; the contents are undefined.
  void shape(std::int64_t new_width, std::int64_t new_height) {
    width = new_width;
    height = new_height;
    if (const auto size = static_cast<std::size_t>(4 * width * height); bytes.size() < size)
      bytes.resize(size);
  }
  const std::uint8_t* row(std::int64_t y) const { return bytes.data() + 4 * width * y; }
  std::uint8_t* row(std::int64_t y) { return bytes.data() + 4 * width * y; }
};

// Decodes images of one format, one after the other. Both functions throw UserError for a bad image; another
// can be opened after that. Not thread-safe.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Reads the header; `file` must stay valid until read() returns.
  virtual ImageSize open(std::span<const std::uint8_t> file) = 0;
  // Decodes at least `part` of the open image, scaled down if that is cheaper, at most by `reduction`.
  // Damage outside of `part` may remain undetected.
  virtual void read(const Rect& part, double reduction, Picture& out) = 0;
};

std::unique_ptr<Decoder> make_jpeg_decoder();  // greyscale and colour, not CMYK
std::unique_ptr<Decoder> make_png_decoder();   // all kinds; transparency is ignored, 16 bits become 8

// Images with more pixels are rejected: no photo has as many, but a damaged header may claim them.
inline constexpr std::int64_t kMostImagePixels = std::int64_t{1} << 28;

}  // namespace capstan::data
