#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

// Reads zip archives by PKWARE's specification; supports stored entries and zip64 only.
namespace capstan::testing {

struct ZipEntry {
  std::string name;
  std::uint32_t crc = 0;
  std::uint64_t bytes = 0;
  std::uint64_t data_at = 0;  // offset of its bytes
  bool zip64 = false;         // its sizes or offset are in zip64
};

// `read(at, size)` returns bytes of the archive; `size` is the archive's.
class ZipReader {
 public:
  using Read = std::function<std::string(std::uint64_t at, std::uint64_t size)>;

  ZipReader(Read read, std::uint64_t size) : read_(std::move(read)), size_(size) {}

  std::vector<ZipEntry> entries() {
    const auto end = size_ - 22;  // without a comment, the last record is the last 22 bytes
    need(number(end, 4) == 0x06054b50, "end of the central directory");
    std::uint64_t count = number(end + 10, 2), bytes = number(end + 12, 4), at = number(end + 16, 4);
    need(number(end + 8, 2) == count && number(end + 20, 2) == 0, "one disk, no comment");
    if (count == 0xffff || bytes == 0xffffffff || at == 0xffffffff) {
      need(number(end - 20, 4) == 0x07064b50, "zip64 locator");
      const auto large = number(end - 20 + 8, 8);
      need(large == end - 76 && number(large, 4) == 0x06064b50, "zip64 end record");
      need(number(large + 4, 8) == 44, "its size");
      count = number(large + 32, 8);
      bytes = number(large + 40, 8);
      at = number(large + 48, 8);
      directory_is_zip64 = true;
      need(at + bytes == large, "the directory ends before it");
    } else {
      need(at + bytes == end, "the directory ends before it");
    }
    std::vector<ZipEntry> out;
    for (std::uint64_t i = 0; i < count; ++i) out.push_back(entry(at));
    return out;
  }

  bool directory_is_zip64 = false;

 private:
  static void need(bool condition, const char* what) {
    if (!condition) throw std::runtime_error(what);
  }
  std::uint64_t number(std::uint64_t at, int width) {
    const auto bytes = read_(at, static_cast<std::uint64_t>(width));
    std::uint64_t out = 0;
    for (int i = width; i-- > 0;)
      out = out << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
    return out;
  }

  ZipEntry entry(std::uint64_t& at) {
    need(number(at, 4) == 0x02014b50, "a directory entry");
    need(number(at + 10, 2) == 0, "stored");
    ZipEntry out;
    out.crc = static_cast<std::uint32_t>(number(at + 16, 4));
    std::uint64_t packed = number(at + 20, 4), place = number(at + 42, 4);
    out.bytes = number(at + 24, 4);
    const auto name = number(at + 28, 2), extra = number(at + 30, 2), comment = number(at + 32, 2);
    out.name = read_(at + 46, name);
    auto field = at + 46 + name + 4;  // after its id and size
    const auto take = [&](std::uint64_t& value) {
      if (value != 0xffffffff) return;
      need(number(at + 46 + name, 2) == 1, "zip64 field");
      value = number(field, 8);
      field += 8;
      out.zip64 = true;
    };
    take(out.bytes);
    take(packed);
    take(place);
    need(packed == out.bytes, "stored as it is");
    at += 46 + name + extra + comment;
    check_local(out, place);
    return out;
  }

  // The local header has the same values.
  void check_local(ZipEntry& out, std::uint64_t at) {
    need(number(at, 4) == 0x04034b50, "a local head");
    need((number(at + 6, 2) & ~0x0800u) == 0 && number(at + 8, 2) == 0, "stored, sizes known");
    need(number(at + 14, 4) == out.crc, "the same checksum");
    const auto name = number(at + 26, 2), extra = number(at + 28, 2);
    need(read_(at + 30, name) == out.name, "the same name");
    if (out.bytes >= 0xffffffff) {
      need(number(at + 18, 4) == 0xffffffff && number(at + 22, 4) == 0xffffffff, "sizes in zip64");
      need(number(at + 30 + name, 2) == 1 && number(at + 30 + name + 2, 2) == 16, "zip64 field");
      need(number(at + 30 + name + 4, 8) == out.bytes && number(at + 30 + name + 12, 8) == out.bytes,
           "its sizes");
    } else {
      need(number(at + 18, 4) == out.bytes && number(at + 22, 4) == out.bytes, "the same sizes");
    }
    // The fields of the extra part fill it exactly.
    auto field = at + 30 + name;
    const auto end = field + extra;
    while (field < end) field += 4 + number(field + 2, 2);
    need(field == end, "whole extra fields");
    out.data_at = end;
  }

  Read read_;
  std::uint64_t size_;
};

inline ZipReader zip_of(const std::string& bytes) {
  return {[&bytes](std::uint64_t at, std::uint64_t size) { return bytes.substr(at, size); }, bytes.size()};
}

}  // namespace capstan::testing
