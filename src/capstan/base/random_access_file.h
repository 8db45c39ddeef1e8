#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "capstan/base/unique_fd.h"

namespace capstan {

// A file that is read at any position. It is read instead of mapped: a file that another process truncates is
// then an error, not a signal. Throws UserError that names the file. Thread-safe.
class RandomAccessFile {
 public:
  explicit RandomAccessFile(const std::filesystem::path& path);

  const std::string& name() const { return name_; }
  std::uint64_t size() const { return size_; }
  // Fills `out`; all of its bytes must be within size().
  void read(std::uint64_t at, std::span<std::byte> out) const;

 private:
  [[noreturn]] void fail(const char* why) const;

  std::string name_;
  UniqueFd file_;
  std::uint64_t size_ = 0;
};

}  // namespace capstan
