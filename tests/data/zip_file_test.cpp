// Archives written by NumPy, and by hand after the specification (APPNOTE.TXT).

#include "capstan/data/zip_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "capstan/base/random.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"

namespace capstan::data {
namespace {

namespace fs = std::filesystem;
using capstan::testing::contents;
using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::string> read_all(const fs::path& path) {
  const ZipFile zip(path);
  std::vector<std::string> texts;
  for (const auto& member : zip.members()) {
    const auto bytes = zip.read(member);
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return texts;
}

void check_all(const fs::path& path) {
  const ZipFile zip(path);
  for (const auto& member : zip.members()) zip.check(member);
}

TEST(ZipFile, DamageIsAnErrorOfOneLine) {
  const TemporaryFolder folder;
  const auto path = folder / "a.npz";
  const auto refused = [&](const std::string& bytes, const std::string& fault) {
    write_file(path, bytes);
    const auto says = ThrowsMessage<UserError>(path.string() + " is not a valid zip archive: " + fault);
    EXPECT_THAT([&] { read_all(path); }, says);
    EXPECT_THAT([&] { check_all(path); }, says);
  };
  const auto good = contents(fs::path(CAPSTAN_SOURCE_DIR) / "tests/reference/arrays/deflated.npz");
  refused("", "it is too short");
  refused(good.substr(0, good.size() / 2), "it has no directory (is it truncated?)");
  refused(good.substr(1), "its directory is damaged");
  auto crc = good;
  crc[good.find("PK\x01\x02") + 16] ^= 1;
  refused(crc, "f2.npy is damaged");
  auto method = good;
  method[good.find("PK\x01\x02") + 10] = 12;
  refused(method, "f2.npy is compressed by method 12; known are stored and deflated");
  auto encrypted = good;
  encrypted[good.find("PK\x01\x02") + 8] |= 1;
  refused(encrypted, "f2.npy is encrypted");
  auto claims = good;
  claims[good.find("PK\x01\x02") + 27] = 0x70;
  EXPECT_THAT(
      [&] {
        write_file(path, claims);
        const ZipFile zip(path);
        (void)zip.read(zip.members()[0]);
      },
      ThrowsMessage<UserError>(HasSubstr("f2.npy claims 18790483")));
}

std::string little_endian(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

struct Written {
  std::string name, packed;
  std::uint64_t unpacked = 0;
  std::uint32_t crc = 0;
  int method = 0;
};

// With zip64, every size and position is in the extra field, as if it did not fit 32 bits.
std::string archive_of(const std::vector<Written>& members, bool zip64) {
  std::string file, directory;
  const auto narrow = [&](std::uint64_t value) { return little_endian(zip64 ? 0xffffffff : value, 4); };
  for (const auto& m : members) {
    const auto wide = little_endian(1, 2) + little_endian(24, 2) + little_endian(m.unpacked, 8) +
                      little_endian(m.packed.size(), 8) + little_endian(file.size(), 8);
    const auto padding = little_endian(0x4246, 2) + little_endian(5, 2) + "ZZZZZ";  // as PyTorch's
    const auto common = little_endian(0, 2) + little_endian(m.method, 2) + little_endian(0, 4) +
                        little_endian(m.crc, 4) + narrow(m.packed.size()) + narrow(m.unpacked) +
                        little_endian(m.name.size(), 2);
    directory += "PK\x01\x02" + little_endian(45, 2) + little_endian(45, 2) + common +
                 little_endian(zip64 ? wide.size() : 0, 2) + std::string(10, '\0') + narrow(file.size()) +
                 m.name + (zip64 ? wide : "");
    file += "PK\x03\x04" + little_endian(45, 2) + common + little_endian(padding.size(), 2) + m.name +
            padding + m.packed;
  }
  const auto at = file.size(), count = members.size();
  file += directory;
  if (zip64)
    file += "PK\x06\x06" + little_endian(44, 8) + little_endian(45, 2) + little_endian(45, 2) +
            std::string(8, '\0') + little_endian(count, 8) + little_endian(count, 8) +
            little_endian(directory.size(), 8) + little_endian(at, 8) + "PK\x06\x07" + little_endian(0, 4) +
            little_endian(at + directory.size(), 8) + little_endian(1, 4);
  const auto entries = little_endian(zip64 ? 0xffff : count, 2);
  return file + "PK\x05\x06" + little_endian(0, 4) + entries + entries + narrow(directory.size()) +
         narrow(at) + little_endian(0, 2);
}

// 0xcbf43926 is the published check value of CRC-32.
TEST(ZipFile, SizesAndPositionsMayBeThoseOfZip64) {
  const TemporaryFolder folder;
  const Written digits{"digits", "123456789", 9, 0xcbf43926}, empty{"empty", "", 0, 0};
  for (const bool zip64 : {false, true}) {
    write_file(folder / "a.zip", archive_of({digits, empty, digits}, zip64));
    EXPECT_EQ(read_all(folder / "a.zip"), (std::vector<std::string>{"123456789", "", "123456789"}));
    check_all(folder / "a.zip");
  }
}

// Random numbers of 16 values: deflate halves them.
std::string large_text() {
  Random random(4);
  std::string text(1'300'000, ' ');
  for (auto& c : text) c = static_cast<char>(random.below(16));
  return text;
}

std::string deflated(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), ' ');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Larger than the pieces in which they are unpacked.
TEST(ZipFile, LargeMembersAreCheckedToTheirEnd) {
  const TemporaryFolder folder;
  const auto path = folder / "a.zip";
  const auto whole = large_text();
  const auto crc = static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(whole.data()), static_cast<uInt>(whole.size())));
  for (const int method : {0, 8}) {
    const Written good{"large", method == 0 ? whole : deflated(whole), whole.size(), crc, method};
    write_file(path, archive_of({good}, true));
    EXPECT_EQ(read_all(path), std::vector{whole});
    check_all(path);
    const auto refused = [&](Written bad) {
      write_file(path, archive_of({bad}, true));
      EXPECT_THAT([&] { check_all(path); }, ThrowsMessage<UserError>(HasSubstr("large is damaged")));
      EXPECT_THAT([&] { read_all(path); }, ThrowsMessage<UserError>(HasSubstr("large is damaged")));
    };
    auto flipped = good, cut = good, shorter = good, longer = good;
    flipped.packed[good.packed.size() - 9] ^= 1;
    cut.packed.resize(good.packed.size() - 1);
    --shorter.unpacked;
    ++longer.unpacked;
    for (const auto& bad : {flipped, cut, shorter, longer}) refused(bad);
  }
}

}  // namespace
}  // namespace capstan::data
