#include "capstan/data/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace capstan::data {
namespace {

// One pixel. Every x86-64 and ARMv8 machine has vectors of four floats; wider ones would not be faster here.
using Pixel = float __attribute__((vector_size(16)));

Pixel load(const float* from) {
  Pixel p;
  std::memcpy(&p, from, sizeof p);
  return p;
}

void store(float* to, Pixel p) {
  std::memcpy(to, &p, sizeof p);
}

void to_floats(const std::uint8_t* in, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = in[i];
}

}  // namespace

void Resampler::Taps::fill(double begin, double length, std::int64_t outputs, std::int64_t low,
                           std::int64_t high) {
  const double step = length / static_cast<double>(outputs);
  const double reach = std::max(1.0, step);
  most = static_cast<std::int32_t>(2 * std::ceil(reach) + 1);
  first.resize(static_cast<std::size_t>(outputs));
  count.resize(static_cast<std::size_t>(outputs));
  weights.resize(static_cast<std::size_t>(outputs) * static_cast<std::size_t>(most));
  for (std::size_t i = 0; i < first.size(); ++i) {
    const double centre = begin + (static_cast<double>(i) + 0.5) * step;
    const auto from = std::clamp(static_cast<std::int64_t>(std::floor(centre - reach + 0.5)), low, high - 1);
    const auto to = std::clamp(static_cast<std::int64_t>(std::floor(centre + reach + 0.5)), from + 1, high);
    auto* const weight = weights.data() + i * static_cast<std::size_t>(most);
    double sum = 0;
    for (auto p = from; p < to; ++p) {
      const double w = std::max(0.0, 1 - std::abs(static_cast<double>(p) + 0.5 - centre) / reach);
      weight[p - from] = static_cast<float>(w);
      sum += w;
    }
    first[i] = static_cast<std::int32_t>(from);
    count[i] = static_cast<std::int32_t>(to - from);
    if (sum <= 0) weight[0] = static_cast<float>(sum = 1);
    for (auto p = from; p < to; ++p) weight[p - from] /= static_cast<float>(sum);
  }
}

void Resampler::run(const Picture& picture, const View& view, std::int64_t side,
                    const Normalisation& normalisation, float* out) {
  const auto scale = picture.scale;
  const auto left = static_cast<double>(picture.left), top = static_cast<double>(picture.top);
  // The edges of view.seen, in whole pixels of the picture.
  const auto edge = [&](std::int64_t at, double origin, std::int64_t most) {
    return std::clamp(static_cast<std::int64_t>(std::lround(static_cast<double>(at) * scale - origin)),
                      std::int64_t{0}, most);
  };
  const auto& seen = view.seen;
  const auto x0 = edge(seen.x, left, picture.width - 1);
  const auto x1 = std::max(x0 + 1, edge(seen.x + seen.width, left, picture.width));
  const auto y0 = edge(seen.y, top, picture.height - 1);
  const auto y1 = std::max(y0 + 1, edge(seen.y + seen.height, top, picture.height));
  across_.fill(view.x * scale - left, view.width * scale, side, x0, x1);
  down_.fill(view.y * scale - top, view.height * scale, side, y0, y1);

  const auto outputs = static_cast<std::size_t>(side);
  const bool mirrored = view.mirrored;
  const auto low = down_.first.front();
  const auto high = down_.first.back() + down_.count.back();
  row_.resize(4 * static_cast<std::size_t>(picture.width));
  rows_.resize(4 * outputs * static_cast<std::size_t>(high - low));
  for (auto y = low; y < high; ++y) {
    to_floats(picture.row(y), row_.size(), row_.data());
    auto* const scaled = rows_.data() + 4 * outputs * static_cast<std::size_t>(y - low);
    for (std::size_t x = 0; x < outputs; ++x) {
      const auto* const weight = across_.weights.data() + x * static_cast<std::size_t>(across_.most);
      const auto* const in = row_.data() + 4 * static_cast<std::size_t>(across_.first[x]);
      Pixel sum = load(in) * weight[0];
      for (std::int32_t k = 1; k < across_.count[x]; ++k) sum += load(in + 4 * k) * weight[k];
      store(scaled + 4 * (mirrored ? outputs - 1 - x : x), sum);
    }
  }

  const auto& [factors, offsets] = normalisation;
  const Pixel factor = {factors[0], factors[1], factors[2], 0},
              offset = {offsets[0], offsets[1], offsets[2], 0};
  const auto stride = 4 * outputs;
  for (std::size_t y = 0; y < outputs; ++y) {
    const auto* const weight = down_.weights.data() + y * static_cast<std::size_t>(down_.most);
    const auto* const in = rows_.data() + stride * static_cast<std::size_t>(down_.first[y] - low);
    const auto count = static_cast<std::size_t>(down_.count[y]);
    const auto value = [&](std::size_t x) {
      Pixel sum = load(in + 4 * x) * weight[0];
      for (std::size_t k = 1; k < count; ++k) sum += load(in + k * stride + 4 * x) * weight[k];
      return sum * factor + offset;
    };
    // Stores of four floats are faster than of three; the next pixel overwrites the fourth.
    for (std::size_t x = 0; x + 1 < outputs; ++x, out += 3) store(out, value(x));
    const auto last = value(outputs - 1);
    std::memcpy(out, &last, 3 * sizeof(float));
    out += 3;
  }
}

}  // namespace capstan::data
