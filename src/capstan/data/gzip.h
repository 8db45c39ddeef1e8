#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace capstan::data {

// The contents of gzip bytes that are part of the program.
std::string unpack_built_in(std::span<const std::uint8_t> gzip);

// Reads a file from its start, unpacking it where it is gzip. Every failure is a UserError with the
// file's name. Not thread-safe.
class GzipFile {
 public:
  explicit GzipFile(std::string path);
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;
  ~GzipFile();

  const std::string& path() const { return path_; }
  // Up to `bytes` bytes, fewer only at the end of the file. Memory follows what is there, not what is asked.
  std::vector<std::uint8_t> read(std::uint64_t bytes);

 private:
  std::string path_;
  void* file_ = nullptr;  // zlib's gzFile
};

}  // namespace capstan::data
