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

// A decoded part of an image, perhaps scaled down; four bytes for a pixel: red, green, blue, and one without
// meaning.
struct Picture {
  std::vector<std::uint8_t> bytes;
  std::int64_t width = 0;
  std::int64_t height = 0;
  double scale = 1;       // of the whole image, 1 or smaller
  std::int64_t left = 0;  // where the part begins in the scaled image
  std::int64_t top = 0;

  // Takes room for so many pixels; what is in it is undefined.
  void shape(std::int64_t new_width, std::int64_t new_height) {
    width = new_width;
    height = new_height;
    if (const auto size = static_cast<std::size_t>(4 * width * height); bytes.size() < size)
      bytes.resize(size);
  }
  const std::uint8_t* row(std::int64_t y) const { return bytes.data() + 4 * width * y; }
  std::uint8_t* row(std::int64_t y) { return bytes.data() + 4 * width * y; }
};

// Reads images of one format, one after the other. Both functions throw UserError that says what is wrong
// with an image; another can be opened after that. Not thread-safe.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Reads the header; `file` must stay until read() is done.
  virtual ImageSize open(std::span<const std::uint8_t> file) = 0;
  // Decodes at least `part` of the open image, scaled down where that is cheaper, at most by `reduction`.
  // Damage elsewhere in the image may go unnoticed.
  virtual void read(const Rect& part, double reduction, Picture& out) = 0;
};

std::unique_ptr<Decoder> make_jpeg_decoder();  // grey and coloured; no CMYK
std::unique_ptr<Decoder> make_png_decoder();   // every kind; transparency is ignored, 16 bits become 8

// Images with more pixels are refused: no photo has them, but a damaged header may.
inline constexpr std::int64_t kMostImagePixels = std::int64_t{1} << 28;

}  // namespace capstan::data
