#include "capstan/fetch/listing.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/fetch/get.h"
#include "capstan/fetch/manifest.h"
#include "capstan/fetch/verify.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"

namespace capstan::fetch {
namespace {

using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
namespace fs = std::filesystem;

std::string here(const Listing& listing, const std::string& name) {
  const auto row = std::ranges::find(listing.rows, name, &Listing::Row::name);
  return row == listing.rows.end() ? "not listed" : row->here;
}

TEST(Listing, SaysOfEachDatasetWhetherItIsHere) {
  const TemporaryFolder data;
  fs::create_directories(data / "mnist");
  for (const char* name : {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte",
                           "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"})
    write_file(data / "mnist" / name, "x");
  fs::create_directories(data / "fashion-mnist");
  write_file(data / "fashion-mnist/t10k-labels-idx1-ubyte.gz", "x");
  write_file(data / "cifar-10-binary.tar.gz.part", "x");
  fs::create_directories(data / "cifar100");
  write_manifest(data / "cifar100", {});
  fs::create_directories(data / "imagenette/mine");
  const auto listing = list_datasets(data.path());
  EXPECT_EQ(listing.rows.size(), catalogue().size());
  EXPECT_EQ(here(listing, "digits"), "built in");
  EXPECT_EQ(here(listing, "mnist"), "yes");
  EXPECT_EQ(here(listing, "fashion-mnist"), "in part");
  EXPECT_EQ(here(listing, "cifar10"), "in part");
  EXPECT_EQ(here(listing, "cifar100"), "yes");
  EXPECT_EQ(here(listing, "imagenette"), "unknown");
  EXPECT_EQ(here(listing, "imagefolder"), "your own");
  EXPECT_EQ(here(list_datasets(data / "nowhere"), "mnist"), "no");
}

TEST(Listing, HasAFolderForWhatIsDownloaded) {
  for (const auto& row : list_datasets("d").rows) {
    const bool downloaded = row.here != "built in" && row.here != "your own";
    EXPECT_EQ(row.folder, downloaded ? "d/" + row.name : "");
    EXPECT_EQ(row.bytes > 0, downloaded) << row.name;
  }
}

TEST(Listing, IsTextAndJson) {
  const Listing listing{
      {{"letters", 26, 1'000, 11'594'722, "in part", "data/letters"}, {"own", 0, 0, 0, "your own", ""}}};
  EXPECT_EQ(listing.text(),
            "name           classes   images   download  downloaded\n"
            "letters             26     1000    11.6 MB  in part\n"
            "own                any      any          -  your own");
  EXPECT_EQ(listing.json().dump(),
            R"({"ok":true,"datasets":[{"name":"letters","classes":26,"images":1000,"bytes":11594722,)"
            R"("here":"in part","folder":"data/letters"},)"
            R"({"name":"own","classes":0,"images":0,"bytes":0,"here":"your own","folder":""}]})");
}

TEST(BuiltIn, IsWhatThereIsNothingToFetchOf) {
  EXPECT_FALSE(built_in(find_entry("mnist")));
  EXPECT_FALSE(built_in(find_entry("cifar10")));
  const auto digits = built_in(find_entry("digits"));
  ASSERT_TRUE(digits);
  EXPECT_EQ(digits->text(), "digits is part of the program: there is nothing to fetch or verify");
  EXPECT_EQ(digits->json().dump(),
            R"({"ok":true,"name":"digits","folder":"",)"
            R"("what":"digits is part of the program: there is nothing to fetch or verify"})");
}

TEST(BuiltIn, ImagesOfTheUsersOwnAreNot) {
  EXPECT_THAT([] { (void)built_in(find_entry("imagefolder")); },
              ThrowsMessage<UserError>(HasSubstr("--dataset imagefolder --data-dir FOLDER")));
}

TEST(GetResult, IsTextAndJson) {
  const GetResult fetched{"mnist", true, "data/mnist"}, there{"mnist", false, "data/mnist"};
  EXPECT_EQ(fetched.text(), "mnist is in data/mnist");
  EXPECT_EQ(there.text(), "mnist is in data/mnist already, and complete");
  EXPECT_EQ(fetched.json().dump(), R"({"ok":true,"name":"mnist","folder":"data/mnist","fetched":true})");
  EXPECT_EQ(there.json().dump(), R"({"ok":true,"name":"mnist","folder":"data/mnist","fetched":false})");
}

TEST(Verdict, IsTextAndJson) {
  const Verdict good{4, {}, "mnist", "data/mnist"};
  EXPECT_TRUE(good.good());
  EXPECT_EQ(good.text(), "mnist: 4 files verified");
  EXPECT_EQ(good.json().dump(),
            R"({"ok":true,"name":"mnist","folder":"data/mnist","files":4,"problems":[]})");
  const Verdict bad{1, {"a is missing", "b is not what was published"}, "mnist", "data/mnist"};
  EXPECT_FALSE(bad.good());
  EXPECT_EQ(bad.text(), "mnist is incomplete or damaged: capstan data get mnist repairs it");
  EXPECT_EQ(bad.json().dump(), R"({"ok":false,"name":"mnist","folder":"data/mnist","files":1,)"
                               R"("problems":["a is missing","b is not what was published"]})");
}

TEST(Verdict, NamesTheDatasetAndItsFolder) {
  const TemporaryFolder data;
  for (const char* name : {"mnist", "cifar10"}) {
    const auto verdict = verify(find_entry(name), data.path());
    EXPECT_EQ(verdict.name, name);
    EXPECT_EQ(verdict.folder, data / name);
    EXPECT_FALSE(verdict.good());
  }
}

}  // namespace
}  // namespace capstan::fetch
