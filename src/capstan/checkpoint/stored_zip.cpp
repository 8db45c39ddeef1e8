#include "capstan/checkpoint/stored_zip.h"

#include <algorithm>

#include <zlib.h>

namespace capstan::checkpoint {
namespace {

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint16_t kNameIsUtf8 = 1 << 11;
constexpr std::uint16_t kPlain = 10, kZip64 = 45;  // versions of zip that a reader must support
constexpr std::uint16_t kZip64Extra = 1;
constexpr std::uint16_t kPaddingExtra = 0x4246;  // "FB", as PyTorch pads
constexpr std::uint16_t kFirstOfJanuary1980 =
    1 << 5 | 1;  // zip's earliest date: equal weights give equal files
constexpr std::uint64_t kMost16 = 0xffff, kMost32 = 0xffffffff;  // these values mean "see zip64"

// A sequence of little-endian numbers.
class Record {
 public:
  Record& u16(std::uint64_t v) { return number(v, 2); }
  Record& u32(std::uint64_t v) { return number(v, 4); }
  Record& u64(std::uint64_t v) { return number(v, 8); }
  // A number that does not fit is written as the largest one, and again in zip64.
  Record& u16_or_most(std::uint64_t v) { return u16(std::min(v, kMost16)); }
  Record& u32_or_most(std::uint64_t v) { return u32(std::min(v, kMost32)); }
  Record& text(const std::string& t) {
    bytes_ += t;
    return *this;
  }
  std::size_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bytes_)); }

 private:
  Record& number(std::uint64_t v, int width) {
    for (int i = 0; i < width; ++i) bytes_ += static_cast<char>(v >> (8 * i));
    return *this;
  }

  std::string bytes_;
};

}  // namespace

StoredZip::StoredZip(Write write) : write_(std::move(write)) {}

void StoredZip::put(std::span<const std::byte> bytes) {
  write_(bytes);
  at_ += bytes.size();
}

void StoredZip::add(const std::string& name, std::span<const std::byte> bytes) {
  constexpr std::size_t kHead = 30;
  const bool large = bytes.size() >= kMost32;
  Entry entry{name, 0, bytes.size(), at_};
  entry.crc =
      static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));

  Record extra;
  if (large) extra.u16(kZip64Extra).u16(16).u64(bytes.size()).u64(bytes.size());
  const auto unpadded = at_ + kHead + name.size() + extra.size() + 4;
  const auto padding = (kAlignment - unpadded % kAlignment) % kAlignment;
  extra.u16(kPaddingExtra).u16(padding).text(std::string(padding, 'Z'));

  Record head;
  head.u32(0x04034b50).u16(large ? kZip64 : kPlain).u16(kNameIsUtf8).u16(0).u16(0).u16(kFirstOfJanuary1980);
  head.u32(entry.crc).u32_or_most(bytes.size()).u32_or_most(bytes.size());
  head.u16(name.size()).u16(extra.size()).text(name);
  put(head.bytes());
  put(extra.bytes());
  put(bytes);
  entries_.push_back(std::move(entry));
}

void StoredZip::put_directory_entry(const Entry& entry) {
  Record large;
  if (entry.bytes >= kMost32) large.u64(entry.bytes).u64(entry.bytes);
  if (entry.at >= kMost32) large.u64(entry.at);
  Record extra;
  if (large.size() > 0) extra.u16(kZip64Extra).u16(large.size());
  const auto version = large.size() > 0 ? kZip64 : kPlain;
  Record head;
  head.u32(0x02014b50).u16(version).u16(version).u16(kNameIsUtf8).u16(0).u16(0).u16(kFirstOfJanuary1980);
  head.u32(entry.crc).u32_or_most(entry.bytes).u32_or_most(entry.bytes);
  head.u16(entry.name.size()).u16(extra.size() + large.size()).u16(0);  // no comment
  head.u16(0).u16(0).u32(0).u32_or_most(entry.at).text(entry.name);
  put(head.bytes());
  put(extra.bytes());
  put(large.bytes());
}

void StoredZip::finish() {
  const auto begin = at_;
  for (const auto& entry : entries_) put_directory_entry(entry);
  const auto end = at_;
  const auto count = entries_.size();
  if (count >= kMost16 || end - begin >= kMost32 || begin >= kMost32) {
    Record large;
    large.u32(0x06064b50).u64(44).u16(kZip64).u16(kZip64).u32(0).u32(0);
    large.u64(count).u64(count).u64(end - begin).u64(begin);
    large.u32(0x07064b50).u32(0).u64(end).u32(1);  // the offset of the record above
    put(large.bytes());
  }
  Record last;
  last.u32(0x06054b50).u16(0).u16(0).u16_or_most(count).u16_or_most(count);
  last.u32_or_most(end - begin).u32_or_most(begin).u16(0);
  put(last.bytes());
}

}  // namespace capstan::checkpoint
