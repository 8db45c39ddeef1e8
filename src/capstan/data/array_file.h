#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "capstan/base/dtype.h"

namespace capstan::data {

// An array of a file: little-endian, row-major.
struct Array {
  std::string place;  // file and array, for messages
  DType type = DType::kF32;
  std::vector<std::int64_t> dims;
  std::vector<std::byte> bytes;
};

// A file with arrays that are read on demand. Everything wrong with it is a UserError with the file's name.
// Not thread-safe.
class ArrayFile {
 public:
  virtual ~ArrayFile() = default;
  // The arrays' names. A .npy file has one array without a name.
  virtual const std::vector<std::string>& names() const = 0;
  virtual Array read(std::size_t array) const = 0;
};

// By the extension: .npy, .npz or .safetensors.
std::unique_ptr<ArrayFile> open_array_file(const std::filesystem::path& path);

bool is_npy(const std::filesystem::path& path);

}  // namespace capstan::data
