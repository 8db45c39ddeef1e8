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

namespace capstan::checkpoint {

// The safetensors file format: an 8-byte little-endian header length, a JSON header that names each tensor's
// dtype, shape and place, then the bytes of the tensors one after the other. 32-bit floats and
// 64-bit integers are written; F64, F16, BF16 and I64 are read too, and become 32-bit floats.

using Metadata = std::map<std::string, std::string>;

// A tensor of 32-bit floats to be written, in C order of its shape.
struct TensorView {
  std::string name;
  std::vector<std::int64_t> dims;
  std::span<const float> values;  // as many as dims say
  bool as_int64 = false;          // written as 64-bit integers: every value is one
};
// Aborts where a view breaks its promises.
void check(const TensorView& view);
// The values of an as_int64 tensor.
std::vector<std::int64_t> int64_values(const TensorView& view);

// Integers come first in the file, where they are aligned; floats follow in the order given. Replaces `path`
// as a whole: readers see the old file or the new one, also after a crash. Throws UserError and leaves what
// was there where the file cannot be written.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const Metadata& metadata = {});

// A tensor of a file that was read.
struct Tensor {
  std::string name;
  std::vector<std::int64_t> dims;
  std::vector<float> values;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

struct Safetensors {
  std::vector<Tensor> tensors;  // in the order of their places in the file
  Metadata metadata;
  friend bool operator==(const Safetensors&, const Safetensors&) = default;
};

// A file whose header has been read and checked; its tensors are read one by one, when asked for. Not
// thread-safe. Throws UserError that names the file and the fault; never reads outside the file's bytes.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::filesystem::path& path);
  // Of bytes in memory, which must live as long; `name` stands for the file in messages.
  SafetensorsReader(std::span<const std::byte> bytes, std::string name);
  ~SafetensorsReader();

  const Metadata& metadata() const;
  // In the order of their places in the file.
  std::size_t tensors() const;
  Tensor read(std::size_t tensor) const;
  // Nothing where the file has no tensor of this name.
  std::optional<Tensor> read(const std::string& tensor) const;

 private:
  class Content;
  std::unique_ptr<const Content> content_;
};

// All of a file at once.
Safetensors read_safetensors(const std::filesystem::path& path);
Safetensors parse_safetensors(std::span<const std::byte> bytes, const std::string& name);

}  // namespace capstan::checkpoint
