#include "capstan/checkpoint/checksum.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include "support/temporary_folder.h"

namespace capstan::checkpoint {
namespace {

// The last size is larger than the pieces in which a file is read.
TEST(Checksum, OfAFileIsThatOfItsBytes) {
  const capstan::testing::TemporaryFolder folder;
  for (const std::size_t size : {0, 1, 5000, 1'000'003}) {
    std::string bytes(size, ' ');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * i / 7);
    capstan::testing::write_file(folder / "x", bytes);
    EXPECT_EQ(checksum(RandomAccessFile(folder / "x")), XXH3_64bits(bytes.data(), size)) << size;
  }
  EXPECT_EQ(checksum(std::span<const std::byte>()), 0x2d06800538d394c2) << "the published value of no bytes";
}

}  // namespace
}  // namespace capstan::checkpoint
