#include "capstan/data/augment.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "capstan/user_error.h"

namespace capstan::data {
namespace {

constexpr std::uint64_t kDomain = 0x6175676d656e74;  // separates this random stream from others
constexpr double kLeastArea = 0.08;
constexpr double kWidest = 4.0 / 3;
constexpr int kDraws = 10;

ResizedCrop middle(std::int64_t width, std::int64_t height) {
  const auto w =
      std::min(width, static_cast<std::int64_t>(std::lround(static_cast<double>(height) * kWidest)));
  const auto h =
      std::min(height, static_cast<std::int64_t>(std::lround(static_cast<double>(width) * kWidest)));
  return {{(width - w) / 2, (height - h) / 2, w, h}};
}

}  // namespace

Augment parse_augment(std::string_view name) {
  if (name == "auto") return Augment::kAuto;
  if (name == "none") return Augment::kNone;
  if (name == "crop-flip") return Augment::kCropFlip;
  if (name == "resized-crop") return Augment::kResizedCrop;
  throw UserError(fmt::format("--augment {}: must be auto, none, crop-flip or resized-crop", name));
}

Random random_for(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample) {
  return Random(derive_seed({kDomain, seed, epoch, sample}));
}

Shift draw_shift(Random& random) {
  Shift shift;
  shift.right = static_cast<int>(random.below(2 * kMostShift + 1)) - kMostShift;
  shift.down = static_cast<int>(random.below(2 * kMostShift + 1)) - kMostShift;
  shift.mirrored = random.below(2) == 1;
  return shift;
}

ResizedCrop draw_resized_crop(Random& random, std::int64_t width, std::int64_t height) {
  const bool mirrored = random.below(2) == 1;
  const auto area = static_cast<double>(width) * static_cast<double>(height);
  for (int i = 0; i < kDraws; ++i) {
    const double share = area * (kLeastArea + (1 - kLeastArea) * random.uniform());
    const double shape = std::exp(std::log(kWidest) * (2 * random.uniform() - 1));  // width ÷ height
    const auto w = std::lround(std::sqrt(share * shape));
    const auto h = std::lround(std::sqrt(share / shape));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const auto x = random.below(static_cast<std::uint64_t>(width - w + 1));
    const auto y = random.below(static_cast<std::uint64_t>(height - h + 1));
    return {{static_cast<std::int64_t>(x), static_cast<std::int64_t>(y), w, h}, mirrored};
  }
  auto crop = middle(width, height);
  crop.mirrored = mirrored;
  return crop;
}

}  // namespace capstan::data
