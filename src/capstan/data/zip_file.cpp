#include "capstan/data/zip_file.h"

#include <algorithm>
#include <optional>

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
constexpr std::size_t kPiece = 1u << 18;    // bytes that are unpacked at once; they stay in the cache

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

// Inflates a member piece by piece. Not thread-safe.
class Inflater {
 public:
  Inflater() { CAPSTAN_CHECK(inflateInit2(&stream_, kRawDeflate) == Z_OK, "zlib initializes"); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  // Calls `take` with what the next packed bytes become. False if they are not deflated data.
  template <class Take>
  bool add(Bytes packed, const Take& take) {
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(packed.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = static_cast<uInt>(out_.size());
      const auto state = inflate(&stream_, Z_NO_FLUSH);
      take(Bytes(out_).first(out_.size() - stream_.avail_out));
      if (state == Z_STREAM_END) return has_ended_ = true;
      if (state == Z_BUF_ERROR) return true;  // more input is needed
      if (state != Z_OK) return false;
    } while (stream_.avail_in > 0 || stream_.avail_out == 0);
    return true;
  }
  bool has_ended() const { return has_ended_; }

 private:
  z_stream stream_{};
  std::vector<std::byte> out_ = std::vector<std::byte>(kPiece);
  bool has_ended_ = false;
};

std::uint32_t crc_of(std::uint32_t before, Bytes bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<z_size_t>(bytes.size())));
}

}  // namespace

ZipFile::ZipFile(const std::filesystem::path& path) : file_(path) {
  read_directory(find_directory());
}

void ZipFile::fail(const std::string& what) const {
  throw UserError(fmt::format("{} is not a valid zip archive: {}", name(), what));
}

void ZipFile::check_inside(std::uint64_t at, std::uint64_t count, const std::string& what) const {
  if (at > file_.size() || count > file_.size() - at)
    fail(fmt::format("{} is outside of the file (is it truncated?)", what));
}

std::vector<std::byte> ZipFile::bytes_at(std::uint64_t at, std::uint64_t count,
                                         const std::string& what) const {
  check_inside(at, count, what);
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

std::uint64_t ZipFile::begin_of(const Member& member) const {
  if (member.flags & kEncrypted) fail(fmt::format("{} is encrypted", member.name));
  if (member.method != kStored && member.method != kDeflated)
    fail(fmt::format("{} is compressed by method {}; known are stored and deflated", member.name,
                     member.method));
  if (member.method == kDeflated && member.unpacked / kMostRatio > member.packed)
    fail(fmt::format("{} claims {} bytes", member.name, member.unpacked));
  if (member.method == kStored && member.unpacked != member.packed)
    fail(fmt::format("{} is damaged", member.name));
  const auto local = bytes_at(member.at, kLocal, member.name);
  if (number<std::uint32_t>(local, 0) != kLocalSign)
    fail(fmt::format("{} is not where the directory says", member.name));
  const auto begin = member.at + kLocal + number<std::uint16_t>(local, 26) + number<std::uint16_t>(local, 28);
  check_inside(begin, member.packed, member.name);
  return begin;
}

void ZipFile::unpack(const Member& member, const std::function<void(Bytes)>& take) const {
  const auto begin = begin_of(member);
  std::uint64_t unpacked = 0;
  std::uint32_t crc = 0;
  bool is_good = true;
  const auto put = [&](Bytes bytes) {
    unpacked += bytes.size();
    is_good = is_good && unpacked <= member.unpacked;
    if (!is_good) return;
    crc = crc_of(crc, bytes);
    take(bytes);
  };
  std::optional<Inflater> inflater;
  if (member.method == kDeflated) inflater.emplace();
  std::vector<std::byte> piece;
  for (std::uint64_t at = 0; at < member.packed && is_good; at += piece.size()) {
    if (inflater && inflater->has_ended()) break;
    piece.resize(std::min<std::uint64_t>(kPiece, member.packed - at));
    file_.read(begin + at, piece);
    if (!inflater)
      put(piece);
    else if (!inflater->add(piece, put))
      is_good = false;
  }
  if (inflater && !inflater->has_ended()) is_good = false;
  if (!is_good || unpacked != member.unpacked || crc != member.crc)
    fail(fmt::format("{} is damaged", member.name));
}

std::vector<std::byte> ZipFile::read(const Member& member) const {
  std::vector<std::byte> bytes;
  unpack(member, [&](Bytes piece) {
    if (bytes.empty()) bytes.reserve(member.unpacked);
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  });
  return bytes;
}

void ZipFile::check(const Member& member) const {
  unpack(member, [](Bytes) {});
}

}  // namespace capstan::data
