#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "capstan/base/random.h"
#include "capstan/data/readers.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

constexpr std::uint64_t kDomain = 0x73796e7468657469;  // separates this random stream from others
constexpr std::uint64_t kMostBytes = std::uint64_t{8} << 30;

struct Spec {
  SampleShape shape;
  std::int64_t train = 2048;
  std::int64_t test() const { return std::max<std::int64_t>(1, train / 4); }
};

// Removes a number in 1 … most and the separator after it from the front of `text`.
std::optional<std::int64_t> take(std::string_view& text, char separator, std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 1 || value > most) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (separator == '\0') return text.empty() ? std::optional(value) : std::nullopt;
  if (!text.starts_with(separator)) return {};
  text.remove_prefix(1);
  return value;
}

std::optional<Spec> parse(std::string_view text) {
  constexpr std::string_view kPrefix = "synthetic:";
  if (!text.starts_with(kPrefix)) return {};
  text.remove_prefix(kPrefix.size());
  const bool counted = std::count(text.begin(), text.end(), ':') == 2;
  const auto channels = take(text, 'x', 64);
  const auto height = channels ? take(text, 'x', 4096) : std::nullopt;
  const auto width = height ? take(text, ':', 4096) : std::nullopt;
  const auto classes = width ? take(text, counted ? ':' : '\0', 100'000) : std::nullopt;
  const auto train = !classes ? std::nullopt : counted ? take(text, '\0', 1'000'000'000) : Spec{}.train;
  if (!train) return {};
  return Spec{{{*channels, *height, *width}, *classes}, *train};
}

// A class is a coarse random pattern of about 7x7 cells, so that it survives pooling.
std::vector<std::uint8_t> prototypes(const SampleShape& shape, std::uint64_t seed) {
  const auto cell_height = std::max<std::int64_t>(1, shape.height() / 7);
  const auto cell_width = std::max<std::int64_t>(1, shape.width() / 7);
  std::vector<std::uint8_t> pixels;
  for (std::int64_t k = 0; k < shape.classes; ++k) {
    for (std::int64_t y = 0; y < shape.height(); ++y) {
      for (std::int64_t x = 0; x < shape.width(); ++x) {
        for (std::int64_t c = 0; c < shape.channels(); ++c) {
          const auto cell = derive_seed(
              {kDomain, seed, static_cast<std::uint64_t>(k), static_cast<std::uint64_t>(y / cell_height),
               static_cast<std::uint64_t>(x / cell_width), static_cast<std::uint64_t>(c)});
          pixels.push_back(static_cast<std::uint8_t>(cell >> 57));
        }
      }
    }
  }
  return pixels;
}

// Images are a class's prototype (0 … 127 per pixel) plus as much noise.
Split draw(const SampleShape& shape, std::int64_t count, const std::vector<std::uint8_t>& classes,
           std::uint64_t seed) {
  Split split;
  split.shape = shape;
  const auto size = shape.elements();
  split.pixels.resize(static_cast<std::size_t>(count) * size);
  Random random(seed);
  auto* out = split.pixels.data();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto label = i % shape.classes;
    split.labels.push_back(label);
    const auto* in = classes.data() + static_cast<std::size_t>(label) * size;
    for (std::size_t p = 0; p < size; p += 8) {
      std::uint64_t noise = random.next();
      for (std::size_t q = p; q < std::min(p + 8, size); ++q, noise >>= 8) *out++ = in[q] + (noise & 127);
    }
  }
  return split;
}

}  // namespace

// Prototype and noise are each uniform: mean 127, variance 2 · 128² / 12.
Statistics synthetic_statistics() {
  return {{127 / 255.0}, {52.3 / 255.0}};
}

Splits make_synthetic(const std::string& name, std::uint64_t seed) {
  const auto spec = parse(name);
  if (!spec) {
    throw UserError(
        fmt::format("dataset '{}': must be synthetic:CxHxW:classes or synthetic:CxHxW:classes:samples, "
                    "such as synthetic:1x28x28:10",
                    name));
  }
  const auto images = static_cast<std::uint64_t>(spec->train + spec->test() + spec->shape.classes);
  if (images * spec->shape.elements() > kMostBytes) {
    throw UserError(
        fmt::format("dataset '{}' needs {} GiB of memory, and the limit is {} GiB: use fewer samples", name,
                    images * spec->shape.elements() >> 30, kMostBytes >> 30));
  }
  const auto classes = prototypes(spec->shape, seed);
  return {draw(spec->shape, spec->train, classes, derive_seed({kDomain, seed, 1})),
          draw(spec->shape, spec->test(), classes, derive_seed({kDomain, seed, 2}))};
}

}  // namespace capstan::data
