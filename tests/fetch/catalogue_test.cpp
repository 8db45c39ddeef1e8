#include "capstan/fetch/catalogue.h"

#include <algorithm>
#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

namespace capstan::fetch {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Catalogue, IsWellFormed) {
  const std::regex checksum("sha256:[0-9a-f]{64}|md5:[0-9a-f]{32}");
  std::set<std::string> names, checksums;
  for (const auto& entry : catalogue()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    const bool remote = entry.kind == Kind::kFiles || entry.kind == Kind::kArchive;
    EXPECT_EQ(remote, !entry.files.empty()) << entry.name;
    EXPECT_EQ(remote, !entry.mirrors.empty()) << entry.name;
    EXPECT_EQ(entry.kind == Kind::kArchive, !entry.archive_folder.empty()) << entry.name;
    for (const auto& mirror : entry.mirrors) {
      EXPECT_TRUE(mirror.starts_with("http")) << mirror;
      EXPECT_FALSE(mirror.ends_with("/")) << mirror;
    }
    for (const auto& file : entry.files) {
      EXPECT_GT(file.bytes, 0u) << file.name;
      EXPECT_TRUE(std::regex_match(file.checksum, checksum)) << file.name;
      EXPECT_TRUE(checksums.insert(file.checksum).second) << file.name;
      if (!file.unpacked_checksum.empty()) {
        EXPECT_TRUE(std::regex_match(file.unpacked_checksum, checksum)) << file.name;
        EXPECT_TRUE(checksums.insert(file.unpacked_checksum).second) << file.name;
      }
    }
  }
}

TEST(Catalogue, HasTheDatasetsOfTraining) {
  for (const char* name :
       {"digits", "synthetic", "mnist", "fashion-mnist", "cifar10", "cifar100", "imagenette", "imagefolder"})
    EXPECT_EQ(find_entry(name).name, name);
}

TEST(Catalogue, NamesTheNearestSpelling) {
  EXPECT_THAT([] { find_entry("cifar-10"); }, ThrowsMessage<UserError>(HasSubstr("did you mean cifar10?")));
}

}  // namespace
}  // namespace capstan::fetch
