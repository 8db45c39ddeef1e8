#pragma once

#include <cstdint>
#include <string_view>

#include "capstan/base/random.h"

namespace capstan::data {

// What is done to training images, anew in every epoch.
enum class Augment {
  kAuto,         // what is usual for the dataset
  kNone,         // they are shown as test images are
  kCropFlip,     // moved by up to 4 pixels, what comes in is black; every second one mirrored
  kResizedCrop,  // a random part of random shape, scaled; every second one mirrored
};

// auto, none, crop-flip or resized-crop; throws UserError for anything else.
Augment parse_augment(std::string_view name);

// The random numbers for one training image; the same whoever asks.
Random random_for(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample);

// By how much an image is moved: pixel (x, y) shows what was at (x + right, y + down).
struct Shift {
  int right = 0;
  int down = 0;
  bool mirrored = false;  // after that
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
// A part of 8 % to 100 % of an image's area, 3:4 to 4:3 in shape, anywhere in it: the random-resized crop
// that networks for ImageNet are trained with. Where none is found in ten draws, the middle of the image, as
// much of it as these shapes allow.
ResizedCrop draw_resized_crop(Random& random, std::int64_t width, std::int64_t height);

}  // namespace capstan::data
