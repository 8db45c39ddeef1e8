#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "capstan/base/unique_fd.h"

namespace capstan::checkpoint {

// Writes a file that appears under its name only when it is whole and on disk: a temporary file beside it,
// fsync, rename, fsync of the folder. Without commit() nothing remains. Failures are UserErrors with the
// file's name and the system's reason. Not thread-safe.
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
