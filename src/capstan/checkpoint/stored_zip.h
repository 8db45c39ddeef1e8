#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace capstan::checkpoint {

// Writes a zip archive whose entries are stored as they are, each beginning on a 64-byte boundary, so that a
// reader may map them. Archives, entries and numbers of entries beyond what zip can say use zip64. Not
// thread-safe.
class StoredZip {
 public:
  using Write = std::function<void(std::span<const std::byte> bytes)>;  // appends to the archive

  explicit StoredZip(Write write);

  void add(const std::string& name, std::span<const std::byte> bytes);
  // The directory of all entries; nothing may follow.
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
