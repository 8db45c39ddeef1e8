#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace capstan::data {

// Unpacks gzip data that is built into the program.
std::string unpack_built_in(std::span<const std::uint8_t> gzip);

// Reads a plain or gzip file sequentially. Every failure is a UserError with the file's name. Not
// thread-safe.
class GzipFile {
 public:
  explicit GzipFile(std::string path);
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;
  ~GzipFile();

  const std::string& path() const { return path_; }
  // Up to `bytes` bytes, fewer only at the end of the file. Allocates for the bytes that exist, not for
  // `bytes`.
  std::vector<std::uint8_t> read(std::uint64_t bytes);

 private:
  std::string path_;
  void* file_ = nullptr;  // zlib's gzFile
};

}  // namespace capstan::data
