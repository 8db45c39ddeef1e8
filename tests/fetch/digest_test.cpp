#include "capstan/fetch/digest.h"

#include <gtest/gtest.h>

#include "capstan/base/failure.h"
#include "support/temporary_folder.h"

namespace capstan::fetch {
namespace {

using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;

std::string digest(const std::string& text, const char* like) {
  Digest d(like);
  // In two pieces, as in transfers.
  const auto bytes = std::as_bytes(std::span(text));
  d.add(bytes.first(bytes.size() / 2));
  d.add(bytes.subspan(bytes.size() / 2));
  return d.text();
}

// RFC 1321, A.5.
TEST(Digest, Md5IsThatOfTheStandard) {
  EXPECT_EQ(digest("", "md5:"), "md5:d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(digest("abc", "md5:"), "md5:900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(digest("abcdefghijklmnopqrstuvwxyz", "md5:"), "md5:c3fcd3d76192e4007dfb496cca67e13b");
}

// FIPS 180-2, appendix B.
TEST(Digest, Sha256IsThatOfTheStandard) {
  EXPECT_EQ(digest("abc", "sha256:"),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest(std::string(1'000'000, 'a'), "sha256:"),
            "sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Digest, OfAFileIsThatOfItsBytes) {
  const TemporaryFolder folder;
  write_file(folder / "a", std::string(1'000'000, 'a'));
  EXPECT_EQ(digest_of(folder / "a", "sha256:anything"),
            "sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_THROW(digest_of(folder / "none", "md5:"), Failure);
  EXPECT_THROW(digest_of(folder.path(), "md5:"), Failure);
}

}  // namespace
}  // namespace capstan::fetch
