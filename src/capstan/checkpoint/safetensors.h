#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "capstan/base/dtype.h"

namespace capstan::checkpoint {

// The safetensors file format: an 8-byte little-endian header length, a JSON header with each tensor's dtype,
// shape and offsets, then the bytes of the tensors. F32 and I64 are written; all types of
// base/dtype.h are read, and converted to 32-bit floats unless their bytes are asked for.

using Metadata = std::map<std::string, std::string>;

// A tensor of 32-bit floats to be written, in row-major order.
struct TensorView {
  std::string name;
  std::vector<std::int64_t> dims;
  std::span<const float> values;  // as many as the shape has
  bool as_int64 = false;          // written as 64-bit integers
};
// Aborts if the number of values differs from the shape.
void check(const TensorView& view);
// The values of an as_int64 tensor.
std::vector<std::int64_t> int64_values(const TensorView& view);

// Integers come first in the file, for their alignment; floats follow in the given order. Replaces `path`
// atomically: readers see the old file or the new one, even after a crash. If the file cannot be written,
// throws UserError and leaves the old one.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const Metadata& metadata = {});

// A tensor read from a file.
struct Tensor {
  std::string name;
  std::vector<std::int64_t> dims;
  std::vector<float> values;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// The header's entry of a tensor.
struct TensorInfo {
  std::string name;
  std::vector<std::int64_t> dims;
  DType type = DType::kF32;
};

struct Safetensors {
  std::vector<Tensor> tensors;  // in the order of their offsets
  Metadata metadata;
  friend bool operator==(const Safetensors&, const Safetensors&) = default;
};

// A file whose header has been read and checked; its tensors are read on demand. Not thread-safe. Throws
// UserError that names the file and its error; never reads outside of the file's bytes.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::filesystem::path& path);
  // Reads bytes in memory, which must outlive the reader; `name` replaces the file's name in messages.
  SafetensorsReader(std::span<const std::byte> bytes, std::string name);
  ~SafetensorsReader();

  const Metadata& metadata() const;
  // In the order of their offsets.
  std::size_t tensors() const;
  const TensorInfo& info(std::size_t tensor) const;
  // As stored: row-major numbers of the tensor's type.
  std::vector<std::byte> read_bytes(std::size_t tensor) const;
  Tensor read(std::size_t tensor) const;
  // No value if the file has no tensor of this name.
  std::optional<Tensor> read(const std::string& tensor) const;

 private:
  class Content;
  std::unique_ptr<const Content> content_;
};

// Reads all tensors.
Safetensors read_safetensors(const std::filesystem::path& path);
Safetensors parse_safetensors(std::span<const std::byte> bytes, const std::string& name);

}  // namespace capstan::checkpoint
