#pragma once

#include <cstdint>
#include <string_view>

#include "capstan/base/random.h"

namespace capstan::data {

// Random transformations of training images, drawn again in every epoch.
enum class Augment {
  kAuto,         // the dataset's usual one
  kNone,         // as test images
  kCropFlip,     // random crop with 4 pixels of black padding; flipped with probability 1/2
  kResizedCrop,  // random resized crop; flipped with probability 1/2
};

// auto, none, crop-flip or resized-crop; throws UserError for anything else.
Augment parse_augment(std::string_view name);

// The random numbers for one training image; they depend on the arguments only.
Random random_for(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample);

// The shift of an image: pixel (x, y) shows what was at (x + right, y + down).
struct Shift {
  int right = 0;
  int down = 0;
  bool mirrored = false;  // after the shift
};
inline constexpr int kMostShift = 4;
Shift draw_shift(Random& random);

// A part of an image, in whole pixels.
struct Rect {
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;

  friend bool operator==(const Rect&, const Rect&) = default;
};

struct ResizedCrop {
  Rect part;
  bool mirrored = false;
};
// The random resized crop of ImageNet training: 8 % to 100 % of the image's area, aspect ratio 3:4 to 4:3, at
// a random position. If ten draws find none, the largest centred crop of such an aspect ratio.
ResizedCrop draw_resized_crop(Random& random, std::int64_t width, std::int64_t height);

}  // namespace capstan::data
