#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "capstan/base/unique_fd.h"

namespace capstan::checkpoint {

// Writes a file that appears under its name only when it is complete and on disk: temporary file, fsync,
// rename, fsync of the folder. Without commit() the temporary file is removed. Failures are UserErrors with
// the file's name and the system's error. Not thread-safe.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  [[noreturn]] void fail(const char* doing) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  UniqueFd file_;
};

}  // namespace capstan::checkpoint
