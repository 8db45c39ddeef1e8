#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "capstan/base/random_access_file.h"

namespace capstan::data {

// Reads the members of a zip archive, stored or deflated, also of zip64. Everything wrong with it is a
// UserError with the file's name. Not thread-safe.
class ZipFile {
 public:
  struct Member {
    std::string name;
    std::uint16_t flags = 0;
    std::uint16_t method = 0;
    std::uint32_t crc = 0;
    std::uint64_t packed = 0;    // bytes in the archive
    std::uint64_t unpacked = 0;  // bytes of the member
    std::uint64_t at = 0;        // offset of its local header
  };

  explicit ZipFile(const std::filesystem::path& path);

  const std::string& name() const { return file_.name(); }
  const std::vector<Member>& members() const { return members_; }
  // The member's bytes, checked by their length and CRC.
  std::vector<std::byte> read(const Member& member) const;
  // Checks the member as read() does, in little memory.
  void check(const Member& member) const;

 private:
  struct Directory {
    std::uint64_t at = 0, bytes = 0, entries = 0;
  };

  [[noreturn]] void fail(const std::string& what) const;
  void check_inside(std::uint64_t at, std::uint64_t count, const std::string& what) const;
  std::vector<std::byte> bytes_at(std::uint64_t at, std::uint64_t count, const std::string& what) const;
  Directory find_directory() const;
  void read_directory(const Directory& directory);
  std::uint64_t begin_of(const Member& member) const;
  // Calls `take` with the member's bytes, piece by piece; throws at the latest after the last one if they are
  // not those that were written.
  void unpack(const Member& member, const std::function<void(std::span<const std::byte>)>& take) const;

  RandomAccessFile file_;
  std::vector<Member> members_;
};

}  // namespace capstan::data
