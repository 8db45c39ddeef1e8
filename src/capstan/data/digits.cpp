#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "capstan/base/check.h"
#include "capstan/data/digits_bytes.h"
#include "capstan/data/gzip.h"
#include "capstan/data/held_out.h"
#include "capstan/data/readers.h"

namespace capstan::data {
namespace {

constexpr int kSide = 8;         // in the file
constexpr int kScaledSide = 28;  // as MNIST's
constexpr int kTop = 16;         // the brightest level
constexpr int kColumns = kSide * kSide + 1;

// The position of an output row or column between two input ones; pixel centres are at halves.
struct Between {
  int low, high;
  double share;  // of `high`
};

const std::array<Between, kScaledSide> kPlaces = [] {
  std::array<Between, kScaledSide> places;
  for (int i = 0; i < kScaledSide; ++i) {
    const double at = std::max(0.0, (i + 0.5) * kSide / kScaledSide - 0.5);
    const int low = std::min(static_cast<int>(at), kSide - 1);
    places[static_cast<std::size_t>(i)] = {low, std::min(low + 1, kSide - 1), at - low};
  }
  return places;
}();

double mix(double low, double high, double share) {
  return low + share * (high - low);
}

void append_scaled(const int* image, std::vector<std::uint8_t>& pixels) {
  for (const auto& y : kPlaces) {
    const int *const upper = image + y.low * kSide, *const lower = image + y.high * kSide;
    for (const auto& x : kPlaces) {
      const double level =
          mix(mix(upper[x.low], upper[x.high], x.share), mix(lower[x.low], lower[x.high], x.share), y.share);
      pixels.push_back(static_cast<std::uint8_t>(std::lround(level * 255 / kTop)));
    }
  }
}

}  // namespace

Splits load_digits() {
  const std::string text = unpack_built_in(digits_bytes());
  Splits digits;
  digits.train.shape = digits.test.shape = {{1, kScaledSide, kScaledSide}, 10};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t sample = 0; at < end; ++sample) {
    int row[kColumns];
    for (int& value : row) {
      const auto [next, error] = std::from_chars(at, end, value);
      CAPSTAN_CHECK(error == std::errc{} && next < end, "the built-in digits are numbers with separators");
      at = next + 1;
    }
    auto& split = is_held_out(sample) ? digits.test : digits.train;
    append_scaled(row, split.pixels);
    split.labels.push_back(row[kColumns - 1]);
  }
  return digits;
}

}  // namespace capstan::data
