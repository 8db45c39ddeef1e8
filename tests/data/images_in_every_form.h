#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <zlib.h>

#include "data/written_arrays.h"

// The same images in every form that a user may have them in: a folder, arrays and a table.
namespace capstan::testing {

namespace fs = std::filesystem;

inline constexpr std::size_t kImages = 12, kChannels = 3, kSide = 16, kPlane = kSide * kSide;

// In the order channel, height, width. All levels occur.
inline std::uint8_t level(std::size_t image, std::size_t element) {
  return static_cast<std::uint8_t>(image * 101 + element * 37 + element / 256);
}

inline std::string big_endian(std::size_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

inline std::string chunk(const std::string& kind, const std::string& body) {
  const auto data = kind + body;
  return big_endian(body.size()) + data +
         big_endian(crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
}

// An RGB image of 8 bits without filters.
inline std::string png(std::size_t image) {
  std::string rows;
  for (std::size_t y = 0; y < kSide; ++y) {
    rows += '\0';
    for (std::size_t x = 0; x < kSide; ++x)
      for (std::size_t c = 0; c < kChannels; ++c)
        rows += static_cast<char>(level(image, c * kPlane + y * kSide + x));
  }
  std::string packed(compressBound(rows.size()), '\0');
  auto size = static_cast<uLongf>(packed.size());
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
           rows.size());
  packed.resize(size);
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR", big_endian(kSide) + big_endian(kSide) + std::string("\x08\x02\0\0\0", 5)) +
         chunk("IDAT", packed) + chunk("IEND", "");
}

// The first half has class 0, so that a folder lists the images in the same order.
inline std::int64_t label(std::size_t image) {
  return image < kImages / 2 ? 0 : 1;
}

inline void write_image_folder(const fs::path& folder) {
  for (std::size_t i = 0; i < kImages; ++i) {
    const auto path = folder / (label(i) == 0 ? "a" : "b") / fmt::format("{:02}.png", i);
    fs::create_directories(path.parent_path());
    write_file(path, png(i));
  }
}

inline void write_arrays_and_table(const fs::path& folder) {
  std::vector<std::uint8_t> levels;
  std::vector<float> floats;
  std::vector<std::int64_t> labels;
  std::string csv = "class";
  for (std::size_t e = 0; e < kChannels * kPlane; ++e) csv += fmt::format(",p{}", e);
  for (std::size_t i = 0; i < kImages; ++i) {
    labels.push_back(label(i));
    csv += fmt::format("\n{}", label(i));
    for (std::size_t e = 0; e < kChannels * kPlane; ++e) {
      levels.push_back(level(i, e));
      floats.push_back(static_cast<float>(level(i, e) / 255.0));
      csv += fmt::format(",{:.9g}", floats.back());
    }
  }
  const std::vector<std::int64_t> dims = {kImages, kChannels, kSide, kSide};
  const auto y = bytes_of_values(labels);
  write_tensors(folder / "levels.safetensors",
                {{"y", "I64", {kImages}, y}, {"x", "U8", dims, bytes_of_values(levels)}});
  write_tensors(folder / "floats.safetensors",
                {{"y", "I64", {kImages}, y}, {"x", "F32", dims, bytes_of_values(floats)}});
  write_file(folder / "cells.csv", csv + "\n");
}

}  // namespace capstan::testing
