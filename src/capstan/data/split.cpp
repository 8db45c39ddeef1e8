#include "capstan/data/split.h"

namespace capstan::data {

Levels normalised_levels(double mean, double deviation) {
  Levels levels;
  for (int i = 0; i < 256; ++i) levels[i] = static_cast<float>((i / 255.0 - mean) / deviation);
  return levels;
}

std::vector<Levels> levels_of(const Statistics& statistics, std::size_t channels) {
  std::vector<Levels> levels;
  for (std::size_t c = 0; c < channels; ++c) {
    levels.push_back(statistics.empty() ? normalised_levels(0, 1)
                                        : normalised_levels(statistics.mean[c], statistics.deviation[c]));
  }
  return levels;
}

void normalise(std::span<const std::uint8_t> pixels, std::span<const Levels> levels, float* out) {
  if (levels.size() == 1) {
    const auto& values = levels.front();
    for (const auto p : pixels) *out++ = values[p];
    return;
  }
  for (auto p = pixels.begin(); p != pixels.end();) {
    for (const auto& values : levels) *out++ = values[*p++];
  }
}

}  // namespace capstan::data
