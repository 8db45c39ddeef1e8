#include "capstan/fetch/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/base/failure.h"
#include "support/temporary_folder.h"
#include "tar.h"

namespace capstan::fetch {
namespace {

using capstan::testing::contents;
using capstan::testing::gzip;
using capstan::testing::tar;
using capstan::testing::tar_entry;
using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Unpack : public ::testing::Test {
 protected:
  Result<Manifest> run(const std::string& bytes) {
    write_file(folder_ / "a.tar.gz", bytes);
    fs::create_directory(folder_ / "out");
    return unpack(folder_ / "a.tar.gz", "top", folder_ / "out", {});
  }

  const TemporaryFolder folder_;
};

TEST_F(Unpack, KeepsTheInnerFolderAndListsItsFiles) {
  const auto manifest =
      run(gzip(tar(tar_entry("top/", "", '5') + tar_entry("./top/a", "abc") + tar_entry("top/deep/b c", "") +
                   tar_entry("beside", "x") + tar_entry("topping/d", "x"))));
  ASSERT_TRUE(manifest) << manifest.status().message();
  const Manifest expected{
      {{"a", 3, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
       {"deep/b c", 0, "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}};
  EXPECT_EQ(*manifest, expected);
  EXPECT_EQ(contents(folder_ / "out/a"), "abc");
  EXPECT_EQ(contents(folder_ / "out/deep/b c"), "");
  EXPECT_FALSE(fs::exists(folder_ / "out/beside"));
  EXPECT_FALSE(fs::exists(folder_ / "out/d"));
}

TEST_F(Unpack, UnpacksLargeFiles) {
  std::string large;
  for (std::uint64_t i = 0; large.size() < 3'000'000; ++i) large += std::to_string(i * 7919 % 10007);
  const auto manifest = run(gzip(tar(tar_entry("top/large", large))));
  ASSERT_TRUE(manifest) << manifest.status().message();
  EXPECT_EQ(contents(folder_ / "out/large"), large);
}

TEST_F(Unpack, RejectsUnsafeEntries) {
  const std::string good = tar_entry("top/a", "abc");
  const std::pair<std::string, const char*> evil[] = {
      {tar_entry("../evil", "x"), "unsafe path"},
      {tar_entry("top/../../evil", "x"), "unsafe path"},
      {tar_entry((folder_ / "evil").string(), "x"), "unsafe path"},
      {tar_entry("top/line\nbreak", "x"), "unsafe path"},
      {tar_entry("top/link", "", '2', "/tmp") + tar_entry("top/link/evil", "x"),
       "neither a file nor a folder"},
      {tar_entry("top/link", "", '1', "../evil"), "neither a file nor a folder"},
      {tar_entry("top/null", "", '3'), "neither a file nor a folder"},
      {tar_entry("top/a", "other"), "twice"},
  };
  for (const auto& [entry, says] : evil) {
    const auto manifest = run(gzip(tar(good + entry)));
    ASSERT_FALSE(manifest) << says;
    EXPECT_THAT(manifest.status().message(), HasSubstr(says));
    EXPECT_THAT(manifest.status().message(), HasSubstr("a.tar.gz"));
    EXPECT_FALSE(fs::exists(folder_ / "evil"));
    EXPECT_EQ(contents(folder_ / "out/a"), "abc");
    fs::remove_all(folder_ / "out");
  }
}

TEST_F(Unpack, RejectsInvalidArchives) {
  const auto whole = gzip(tar(tar_entry("top/a", std::string(10'000, 'x'))), 0);
  for (const auto& bytes : {std::string(), std::string("no archive at all"), gzip("no tar inside"),
                            whole.substr(0, whole.size() / 2), gzip(tar(tar_entry("other/a", "abc")))}) {
    const auto manifest = run(bytes);
    EXPECT_FALSE(manifest) << bytes.size();
    EXPECT_THAT(manifest.status().message(), HasSubstr("is not a valid tar.gz archive"));
    fs::remove_all(folder_ / "out");
  }
}

TEST_F(Unpack, CanBeInterrupted) {
  write_file(folder_ / "a.tar.gz", gzip(tar(tar_entry("top/a", "abc"))));
  EXPECT_THROW((void)unpack(folder_ / "a.tar.gz", "top", folder_.path(), [] { return true; }), Failure);
}

TEST(DigestOfUnpacked, IsThatOfTheUnpackedContents) {
  const TemporaryFolder folder;
  write_file(folder / "a.gz", gzip("abc"));
  EXPECT_EQ(digest_of_unpacked(folder / "a.gz", "md5:"), "md5:900150983cd24fb0d6963f7d28e17f72");
  write_file(folder / "plain", "abc");
  EXPECT_EQ(digest_of_unpacked(folder / "plain", "md5:"), "");
  write_file(folder / "cut.gz", gzip(std::string(100'000, 'x'), 0).substr(0, 50'000));
  EXPECT_EQ(digest_of_unpacked(folder / "cut.gz", "md5:"), "");
  EXPECT_EQ(digest_of_unpacked(folder / "none", "md5:"), "");
}

}  // namespace
}  // namespace capstan::fetch
