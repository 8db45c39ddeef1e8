#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace capstan::checkpoint {

// Writes a zip archive of uncompressed entries, each on a 64-byte boundary, so that a reader can map them.
// Sizes and counts beyond the limits of zip use zip64. Not thread-safe.
class StoredZip {
 public:
  using Write = std::function<void(std::span<const std::byte> bytes)>;  // appends to the archive

  explicit StoredZip(Write write);

  void add(const std::string& name, std::span<const std::byte> bytes);
  // Writes the directory of all entries; the last call.
  void finish();

 private:
  struct Entry {
    std::string name;
    std::uint32_t crc = 0;
    std::uint64_t bytes = 0, at = 0;
  };

  void put(std::span<const std::byte> bytes);
  void put_directory_entry(const Entry& entry);

  Write write_;
  std::uint64_t at_ = 0;  // bytes written so far
  std::vector<Entry> entries_;
};

}  // namespace capstan::checkpoint
