#include "capstan/checkpoint/stored_zip.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "zip_reader.h"

namespace capstan::checkpoint {
namespace {

using capstan::testing::zip_of;
using capstan::testing::ZipReader;

// CRC-32 bit by bit.
std::uint32_t crc_of(const std::string& text) {
  std::uint32_t crc = 0xffffffff;
  for (const unsigned char c : text) {
    crc ^= c;
    for (int i = 0; i < 8; ++i) crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
  }
  return ~crc;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(StoredZip, AlignsEntriesTo64Bytes) {
  std::string archive;
  StoredZip zip([&](auto b) { archive.append(reinterpret_cast<const char*>(b.data()), b.size()); });
  const std::pair<std::string, std::string> given[] = {{"a", "abc"},
                                                       {"folder/b", ""},
                                                       {"folder/\xc3\xbc", std::string(1000, 'x')},
                                                       {std::string(70, 'n'), "123456789"}};
  for (const auto& [name, text] : given) zip.add(name, bytes_of(text));
  zip.finish();

  auto reader = zip_of(archive);
  const auto entries = reader.entries();
  ASSERT_EQ(entries.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(entries[i].name, given[i].first);
    EXPECT_EQ(entries[i].data_at % 64, 0u);
    EXPECT_EQ(archive.substr(entries[i].data_at, entries[i].bytes), given[i].second);
    EXPECT_EQ(entries[i].crc, crc_of(given[i].second));
    EXPECT_FALSE(entries[i].zip64);
  }
  EXPECT_EQ(entries[3].crc, 0xcbf43926u);  // the published check value of "123456789"
  EXPECT_FALSE(reader.directory_is_zip64);
}

TEST(StoredZip, WithoutEntriesIsValid) {
  std::string archive;
  StoredZip zip([&](auto b) { archive.append(reinterpret_cast<const char*>(b.data()), b.size()); });
  zip.finish();
  EXPECT_TRUE(zip_of(archive).entries().empty());
}

TEST(StoredZip, NeedsZip64ForManyEntries) {
  std::string archive;
  StoredZip zip([&](auto b) { archive.append(reinterpret_cast<const char*>(b.data()), b.size()); });
  for (int i = 0; i < 0xffff; ++i) zip.add(std::to_string(i), {});
  zip.finish();
  auto reader = zip_of(archive);
  EXPECT_EQ(reader.entries().size(), 0xffffu);
  EXPECT_TRUE(reader.directory_is_zip64);
}

// Pages that are never written share one page, and the archive is stored without them.
TEST(StoredZip, NeedsZip64ForLargeFiles) {
  constexpr std::size_t kLarge = (std::size_t{1} << 32) + 100;
  void* memory = ::mmap(nullptr, kLarge, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no address space for 4 GiB";
  const std::span large(static_cast<const std::byte*>(memory), kLarge);

  std::string kept;
  std::uint64_t size = 0, left_out_at = 0;
  StoredZip zip([&](std::span<const std::byte> b) {
    if (b.size() == kLarge)
      left_out_at = size;
    else
      kept.append(reinterpret_cast<const char*>(b.data()), b.size());
    size += b.size();
  });
  zip.add("before", bytes_of("abc"));
  zip.add("large", large);
  zip.add("behind", bytes_of("def"));
  zip.finish();
  ::munmap(memory, kLarge);

  const auto read = [&](std::uint64_t at, std::uint64_t bytes) {
    if (at >= left_out_at + kLarge) at -= kLarge;
    return kept.substr(at, bytes);
  };
  ZipReader reader(read, size);
  const auto entries = reader.entries();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_TRUE(reader.directory_is_zip64);
  EXPECT_FALSE(entries[0].zip64);
  EXPECT_TRUE(entries[1].zip64);
  EXPECT_EQ(entries[1].bytes, kLarge);
  EXPECT_EQ(entries[1].data_at, left_out_at);
  EXPECT_EQ(entries[1].data_at % 64, 0u);
  EXPECT_TRUE(entries[2].zip64);  // its offset
  EXPECT_GT(entries[2].data_at, kLarge);
  EXPECT_EQ(read(entries[2].data_at, 3), "def");
}

}  // namespace
}  // namespace capstan::checkpoint
