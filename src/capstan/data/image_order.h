#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace capstan::data {

// Reorders images from channel, height, width to height, width, channel. `dims` are those of one image.
template <class T>
void to_channels_last(const std::vector<std::int64_t>& dims, std::vector<T>& images) {
  const auto channels = static_cast<std::size_t>(dims.at(0));
  const auto plane = static_cast<std::size_t>(dims.at(1) * dims.at(2));
  if (channels == 1) return;
  std::vector<T> image(channels * plane);
  for (auto at = images.begin(); at != images.end(); at += static_cast<std::ptrdiff_t>(image.size())) {
    std::copy_n(at, image.size(), image.begin());
    auto out = at;
    for (std::size_t p = 0; p < plane; ++p)
      for (std::size_t c = 0; c < channels; ++c) *out++ = image[c * plane + p];
  }
}

}  // namespace capstan::data
