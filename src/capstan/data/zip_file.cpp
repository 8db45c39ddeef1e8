#include "capstan/data/zip_file.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <zlib.h>

#include "capstan/base/check.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

// Sizes and signatures of the parts of an archive, from its specification (APPNOTE.TXT).
constexpr std::uint64_t kEnd = 22, kLocator64 = 20, kEnd64 = 56, kEntry = 46, kLocal = 30;
constexpr std::uint32_t kEndSign = 0x06054b50, kLocator64Sign = 0x07064b50, kEnd64Sign = 0x06064b50,
                        kEntrySign = 0x02014b50, kLocalSign = 0x04034b50;
constexpr std::uint64_t kMostComment = 0xffff;
constexpr std::uint32_t kIn64 = 0xffffffff;  // the value is in the zip64 field
constexpr std::uint16_t kStored = 0, kDeflated = 8, kEncrypted = 1;
constexpr int kRawDeflate = -15;
constexpr std::uint64_t kMostRatio = 1032;  // of deflate

using Bytes = std::span<const std::byte>;

template <class T>
T number(Bytes bytes, std::size_t at) {
  T value = 0;
  for (auto i = sizeof(T); i-- > 0;) value = static_cast<T>(value << 8 | std::to_integer<T>(bytes[at + i]));
  return value;
}

// Replaces the sizes and the offset that do not fit 32 bits by those of the extra field.
bool take_zip64(Bytes extra, ZipFile::Member& member) {
  while (extra.size() >= 4) {
    const auto id = number<std::uint16_t>(extra, 0), size = number<std::uint16_t>(extra, 2);
    if (size > extra.size() - 4u) return false;
    auto field = extra.subspan(4, size);
    extra = extra.subspan(4u + size);
    if (id != 1) continue;
    for (auto* value : {&member.unpacked, &member.packed, &member.at}) {
      if (*value != kIn64) continue;
      if (field.size() < 8) return false;
      *value = number<std::uint64_t>(field, 0);
      field = field.subspan(8);
    }
  }
  return true;
}

// The inflated bytes; as many as `size`, or fewer or one more if the data is something else.
std::vector<std::byte> inflated(Bytes packed, std::uint64_t size) {
  z_stream stream{};
  CAPSTAN_CHECK(inflateInit2(&stream, kRawDeflate) == Z_OK, "zlib initializes");
  std::vector<std::byte> out(size + 1);  // one more, to see data that is too long
  std::size_t taken = 0, made = 0;
  int state = Z_OK;
  constexpr std::size_t kMost = 1u << 30;  // zlib counts in 32 bits
  while (state == Z_OK && made < out.size()) {
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data() + taken));
    stream.avail_in = static_cast<uInt>(std::min(kMost, packed.size() - taken));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + made);
    stream.avail_out = static_cast<uInt>(std::min(kMost, out.size() - made));
    const auto before_in = stream.avail_in, before_out = stream.avail_out;
    state = inflate(&stream, Z_NO_FLUSH);
    taken += before_in - stream.avail_in;
    made += before_out - stream.avail_out;
  }
  inflateEnd(&stream);
  out.resize(state == Z_STREAM_END ? made : 0);
  return out;
}

std::uint32_t crc_of(Bytes bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<z_size_t>(bytes.size())));
}

}  // namespace

ZipFile::ZipFile(const std::filesystem::path& path) : file_(path) {
  read_directory(find_directory());
}

void ZipFile::fail(const std::string& what) const {
  throw UserError(fmt::format("{} is not a valid zip archive: {}", name(), what));
}

std::vector<std::byte> ZipFile::bytes_at(std::uint64_t at, std::uint64_t count, const char* what) const {
  if (at > file_.size() || count > file_.size() - at)
    fail(fmt::format("{} is outside of the file (is it truncated?)", what));
  std::vector<std::byte> bytes(count);
  file_.read(at, bytes);
  return bytes;
}

ZipFile::Directory ZipFile::find_directory() const {
  const auto tail_size = std::min(file_.size(), kEnd + kMostComment);
  const auto tail_at = file_.size() - tail_size;
  const auto tail = bytes_at(tail_at, tail_size, "its end");
  auto at = tail.size();
  if (at < kEnd) fail("it is too short");
  for (at -= kEnd; number<std::uint32_t>(tail, at) != kEndSign; --at) {
    if (at == 0) fail("it has no directory (is it truncated?)");
  }
  const auto entries = number<std::uint16_t>(tail, at + 10);
  Directory directory{number<std::uint32_t>(tail, at + 16), number<std::uint32_t>(tail, at + 12), entries};
  if (directory.at != kIn64 && directory.bytes != kIn64 && entries != 0xffff) return directory;
  if (tail_at + at < kLocator64) fail("its zip64 directory is missing");
  const auto locator = bytes_at(tail_at + at - kLocator64, kLocator64, "its zip64 directory");
  if (number<std::uint32_t>(locator, 0) != kLocator64Sign) return directory;  // exactly so many entries
  const auto end = bytes_at(number<std::uint64_t>(locator, 8), kEnd64, "its zip64 directory");
  if (number<std::uint32_t>(end, 0) != kEnd64Sign) fail("its zip64 directory is missing");
  return {number<std::uint64_t>(end, 48), number<std::uint64_t>(end, 40), number<std::uint64_t>(end, 32)};
}

void ZipFile::read_directory(const Directory& directory) {
  const auto bytes = bytes_at(directory.at, directory.bytes, "its directory");
  Bytes rest(bytes);
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    if (rest.size() < kEntry || number<std::uint32_t>(rest, 0) != kEntrySign)
      fail("its directory is damaged");
    Member member;
    member.flags = number<std::uint16_t>(rest, 8);
    member.method = number<std::uint16_t>(rest, 10);
    member.crc = number<std::uint32_t>(rest, 16);
    member.packed = number<std::uint32_t>(rest, 20);
    member.unpacked = number<std::uint32_t>(rest, 24);
    member.at = number<std::uint32_t>(rest, 42);
    const std::size_t name = number<std::uint16_t>(rest, 28), extra = number<std::uint16_t>(rest, 30),
                      comment = number<std::uint16_t>(rest, 32);
    if (name + extra + comment > rest.size() - kEntry) fail("its directory is damaged");
    const auto text = rest.subspan(kEntry, name);
    member.name.assign(reinterpret_cast<const char*>(text.data()), text.size());
    if (!take_zip64(rest.subspan(kEntry + name, extra), member)) fail("its directory is damaged");
    members_.push_back(std::move(member));
    rest = rest.subspan(kEntry + name + extra + comment);
  }
}

std::vector<std::byte> ZipFile::read(const Member& member) const {
  if (member.flags & kEncrypted) fail(fmt::format("{} is encrypted", member.name));
  if (member.method != kStored && member.method != kDeflated)
    fail(fmt::format("{} is compressed by method {}; known are stored and deflated", member.name,
                     member.method));
  const auto local = bytes_at(member.at, kLocal, member.name.c_str());
  if (number<std::uint32_t>(local, 0) != kLocalSign)
    fail(fmt::format("{} is not where the directory says", member.name));
  const auto begin = member.at + kLocal + number<std::uint16_t>(local, 26) + number<std::uint16_t>(local, 28);
  auto bytes = bytes_at(begin, member.packed, member.name.c_str());
  if (member.method == kDeflated) {
    if (member.unpacked / kMostRatio > member.packed)
      fail(fmt::format("{} claims {} bytes", member.name, member.unpacked));
    bytes = inflated(bytes, member.unpacked);
  }
  if (bytes.size() != member.unpacked || crc_of(bytes) != member.crc)
    fail(fmt::format("{} is damaged", member.name));
  return bytes;
}

}  // namespace capstan::data
