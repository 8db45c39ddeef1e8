#include "capstan/fetch/get.h"

#include <csignal>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "capstan/base/failure.h"
#include "capstan/fetch/manifest.h"
#include "capstan/fetch/verify.h"
#include "capstan/user_error.h"

#include "http_server.h"
#include "support/eventually.h"
#include "support/temporary_folder.h"
#include "tar.h"

namespace capstan::fetch {
namespace {

using capstan::testing::Answer;
using capstan::testing::contents;
using capstan::testing::eventually;
using capstan::testing::gzip;
using capstan::testing::HttpServer;
using capstan::testing::tar;
using capstan::testing::tar_entry;
using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;
namespace fs = std::filesystem;

// The test message of a million characters of FIPS 180-2, with its published digest.
const std::string kMillion(1'000'000, 'a');
constexpr const char* kMillionSum = "sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
constexpr const char* kAbcSum = "md5:900150983cd24fb0d6963f7d28e17f72";

class Get : public ::testing::Test {
 protected:
  Get() {
    options_.data_dir = folder_ / "data";
    // A server's thread may have to wait for a core: only a test of a stall uses a short limit.
    options_.timeouts = {.connect_seconds = 60, .stall_seconds = 60};
    options_.say = [this](const std::string& line) { said_.push_back(line); };
  }

  // Two files, on two mirrors of one server.
  Entry files() const {
    return {.name = "letters",
            .mirrors = {server_.url() + "/one", server_.url() + "/two"},
            .files = {{"million", 1'000'000, kMillionSum, ""}, {"abc", 3, kAbcSum, ""}}};
  }
  Entry archive(const std::string& bytes, const std::string& checksum = "") {
    server_.set("/one/a.tar.gz", {bytes});
    return {.name = "pictures",
            .kind = Kind::kArchive,
            .mirrors = {server_.url() + "/one"},
            .files = {{"a.tar.gz", bytes.size(), checksum, ""}},
            .archive_folder = "top"};
  }
  std::string failure(const Entry& entry) {
    try {
      (void)get(entry, options_);
    } catch (const Failure& error) {
      code_ = error.code();
      return error.what();
    }
    return "";
  }
  fs::path here(const std::string& name) const { return folder_ / "data" / name; }

  const TemporaryFolder folder_;
  HttpServer server_;
  GetOptions options_;
  std::vector<std::string> said_;
  int code_ = 0;
};

TEST_F(Get, DownloadsFilesOnce) {
  server_.set("/one/million", {kMillion});
  server_.set("/one/abc", {"abc"});
  const auto first = get(files(), options_);
  EXPECT_TRUE(first.fetched);
  EXPECT_EQ(first.folder, here("letters"));
  EXPECT_EQ(contents(here("letters/million")), kMillion);
  EXPECT_EQ(contents(here("letters/abc")), "abc");
  EXPECT_EQ(std::distance(fs::directory_iterator(here("letters")), fs::directory_iterator()), 2);
  EXPECT_FALSE(get(files(), options_).fetched);
  EXPECT_EQ(server_.requests().size(), 2u);
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_THAT(verify(files(), options_.data_dir).problems, IsEmpty());
}

TEST_F(Get, ContinuesAfterABrokenConnection) {
  server_.set("/one/million", Answer{.body = kMillion, .stop_after = 400'000, .stops = 2});
  server_.set("/one/abc", {"abc"});
  EXPECT_TRUE(get(files(), options_).fetched);
  EXPECT_EQ(contents(here("letters/million")), kMillion);
  const auto requests = server_.requests();
  ASSERT_EQ(requests.size(), 4u);
  EXPECT_EQ(requests[1].range, "400000-");
  EXPECT_EQ(requests[2].range, "800000-");
}

TEST_F(Get, ResumesAPartialDownload) {
  server_.set("/one/million", {kMillion});
  server_.set("/one/abc", {"abc"});
  fs::create_directories(here("letters"));
  write_file(here("letters/million.part"), kMillion.substr(0, 999'999));
  EXPECT_EQ(presence(files(), options_.data_dir), Presence::kPartial);
  EXPECT_TRUE(get(files(), options_).fetched);
  EXPECT_EQ(server_.requests()[0].range, "999999-");
  EXPECT_EQ(contents(here("letters/million")), kMillion);
}

TEST_F(Get, StartsOverIfThePartIsOfAnotherFile) {
  server_.set("/one/million", {kMillion});
  server_.set("/one/abc", {"abc"});
  fs::create_directories(here("letters"));
  for (const auto& other : {std::string(10, 'b'), std::string(2'000'000, 'b')}) {
    write_file(here("letters/million.part"), other);
    fs::remove(here("letters/million"));
    EXPECT_TRUE(get(files(), options_).fetched);
    EXPECT_EQ(contents(here("letters/million")), kMillion);
    EXPECT_THAT(said_, Contains(HasSubstr("starting over")));
  }
}

TEST_F(Get, TriesTheNextMirrorAfterMissingOrWrongFiles) {
  server_.set("/one/abc", {"abd"});
  server_.set("/two/abc", {"abc"});
  server_.set("/two/million", {kMillion});
  EXPECT_TRUE(get(files(), options_).fetched);
  EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr("/one/million"), HasSubstr("HTTP 404"))));
  // The mirror of the first file is tried first for the second.
  EXPECT_EQ(server_.requests().back().path, "/two/abc");

  auto entry = files();
  entry.name = "again";
  entry.files.erase(entry.files.begin());
  said_.clear();
  EXPECT_TRUE(get(entry, options_).fetched);
  EXPECT_THAT(said_, ElementsAre(AllOf(HasSubstr("/one/abc"), HasSubstr("wrong checksum"))));
  EXPECT_EQ(contents(here("again/abc")), "abc");
}

TEST_F(Get, TriesTheNextMirrorAfterAStall) {
  server_.set("/one/million", Answer{.body = kMillion, .stop_after = 10, .stops = 1000, .stalls = true});
  server_.set("/two/million", {kMillion});
  server_.set("/two/abc", {"abc"});
  options_.timeouts.stall_seconds = 1;
  // On a busy machine the limit may also pass for the second mirror: what it sent is kept, and continued.
  EXPECT_TRUE(eventually([&] {
    try {
      return get(files(), options_).fetched;
    } catch (const Failure&) {
      return false;
    }
  }));
  EXPECT_EQ(contents(here("letters/million")), kMillion);
}

TEST_F(Get, ReportsAWrongChecksumAndRemovesTheFile) {
  server_.set("/one/million", {kMillion});
  server_.set("/one/abc", {"abd"});
  server_.set("/two/abc", {"abcd"});
  // MD5 of "abd", by md5sum.
  EXPECT_THAT(failure(files()), AllOf(HasSubstr(kAbcSum), HasSubstr("md5:4911e516e5aa21d327512e0c8b197616"),
                                      HasSubstr("place abc in")));
  EXPECT_EQ(code_, kFailed);
  EXPECT_FALSE(fs::exists(here("letters/abc")));
  EXPECT_FALSE(fs::exists(here("letters/abc.part")));
}

TEST_F(Get, ExplainsWhereToPlaceUnavailableFiles) {
  EXPECT_THAT(failure(files()),
              AllOf(HasSubstr("place million, abc in " + here("letters").string()), HasSubstr("--mirror")));
  EXPECT_EQ(code_, kFailed);
  EXPECT_EQ(said_.size(), 2u);
  const auto entry = archive("x", kAbcSum);
  server_.set("/one/a.tar.gz", Answer{.status = 500});
  EXPECT_THAT(failure(entry), HasSubstr("place a.tar.gz in " + options_.data_dir.string()));
}

TEST_F(Get, AcceptsFilesPlacedByTheUser) {
  fs::create_directories(here("letters"));
  write_file(here("letters/million"), kMillion);
  write_file(here("letters/abc"), "abc");
  EXPECT_FALSE(get(files(), options_).fetched);

  write_file(here("a.tar.gz"), gzip(tar(tar_entry("top/a", "abc"))));
  auto entry = archive("");
  EXPECT_TRUE(get(entry, options_).fetched);
  EXPECT_EQ(contents(here("pictures/a")), "abc");
  EXPECT_THAT(server_.requests(), IsEmpty());
}

TEST_F(Get, SetsAWrongFileAside) {
  server_.set("/one/million", {kMillion});
  fs::create_directories(here("letters"));
  write_file(here("letters/million"), "mine");
  write_file(here("letters/abc"), "abc");
  EXPECT_THAT(verify(files(), options_.data_dir).problems,
              ElementsAre(HasSubstr("million differs from the published")));
  EXPECT_TRUE(get(files(), options_).fetched);
  EXPECT_EQ(contents(here("letters/million")), kMillion);
  EXPECT_EQ(contents(here("letters/million.old")), "mine");
}

TEST_F(Get, AcceptsRepackedAndUnpackedFiles) {
  // The published file differs, but has the same contents.
  Entry entry{.name = "packed",
              .mirrors = {server_.url()},
              .files = {{"abc.gz", 1, "md5:00000000000000000000000000000000", kAbcSum}}};
  server_.set("/abc.gz", {gzip("abc", 1)});
  EXPECT_TRUE(get(entry, options_).fetched);
  EXPECT_THAT(verify(entry, options_.data_dir).problems, IsEmpty());
  fs::remove(here("packed/abc.gz"));
  write_file(here("packed/abc"), "abc");
  EXPECT_FALSE(get(entry, options_).fetched);
  // Readers prefer an unpacked file: a wrong one must not stay.
  write_file(here("packed/abc"), "abd");
  EXPECT_TRUE(get(entry, options_).fetched);
  EXPECT_FALSE(fs::exists(here("packed/abc")));
  EXPECT_TRUE(fs::exists(here("packed/abc.gz")));
}

TEST_F(Get, ReportsThatNoChecksumIsPublished) {
  Entry entry{.name = "free", .mirrors = {server_.url()}, .files = {{"a", 0, "", ""}}};
  server_.set("/a", {"anything"});
  EXPECT_TRUE(get(entry, options_).fetched);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("no checksum is published")));
}

TEST_F(Get, CopiesFromAFolder) {
  fs::create_directory(folder_ / "mirror");
  write_file(folder_ / "mirror/million", kMillion);
  write_file(folder_ / "mirror/abc", "abc");
  options_.mirror = (folder_ / "mirror").string() + "/";
  EXPECT_TRUE(get(files(), options_).fetched);
  EXPECT_EQ(contents(here("letters/million")), kMillion);
  EXPECT_THAT(server_.requests(), IsEmpty());
}

TEST_F(Get, RejectsAnInvalidMirror) {
  for (const char* mirror : {"ftp://127.0.0.1", "file:///tmp", "/no/such/folder"}) {
    options_.mirror = mirror;
    EXPECT_THAT([&] { (void)get(files(), options_); }, ThrowsMessage<UserError>(HasSubstr("--mirror")));
  }
}

TEST_F(Get, ChecksFreeSpaceFirst) {
  auto entry = files();
  entry.files[0].bytes = std::uint64_t{1} << 60;
  EXPECT_THAT(failure(entry), AllOf(HasSubstr("MB are free"), HasSubstr("--data-dir")));
  EXPECT_EQ(code_, kFailed);
  EXPECT_THAT(server_.requests(), IsEmpty());
}

// A limit on the file size simulates a full disk: a write fails in the middle.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_F(Get, KeepsThePartialDownloadOnAFullDisk) {
  server_.set("/one/million", {kMillion});
  server_.set("/one/abc", {"abc"});
  std::string message;
  {
    const FullDisk disk(300'000);
    message = failure(files());
  }
  EXPECT_THAT(message, AllOf(HasSubstr("million.part"), HasSubstr("File too large")));
  EXPECT_EQ(code_, kFailed);
  EXPECT_EQ(server_.requests().size(), 1u) << "another mirror does not fix a full disk";
  EXPECT_EQ(contents(here("letters/million.part")), kMillion.substr(0, 300'000));
  EXPECT_TRUE(get(files(), options_).fetched);
  EXPECT_EQ(server_.requests()[1].range, "300000-");
}

TEST_F(Get, LeavesNoPartlyUnpackedFolderOnAFullDisk) {
  const auto entry = archive(gzip(tar(tar_entry("top/a", kMillion))));
  std::string message;
  {
    const FullDisk disk(300'000);
    message = failure(entry);
  }
  EXPECT_THAT(message, HasSubstr("File too large"));
  EXPECT_TRUE(fs::exists(here("a.tar.gz")));
  EXPECT_FALSE(fs::exists(here("pictures")));
  EXPECT_FALSE(fs::exists(here(".pictures.unpacking")));
  EXPECT_TRUE(get(entry, options_).fetched);
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST_F(Get, UnpacksAnArchiveOnce) {
  const auto entry = archive(gzip(tar(tar_entry("top/a", "abc") + tar_entry("top/deep/b", kMillion))));
  // The remains of a killed unpacking.
  fs::create_directories(here(".pictures.unpacking"));
  write_file(here(".pictures.unpacking/a"), "half");
  EXPECT_TRUE(get(entry, options_).fetched);
  EXPECT_EQ(contents(here("pictures/a")), "abc");
  EXPECT_EQ(contents(here("pictures/deep/b")), kMillion);
  EXPECT_FALSE(fs::exists(here("a.tar.gz")));
  EXPECT_FALSE(fs::exists(here(".pictures.unpacking")));
  EXPECT_EQ(presence(entry, options_.data_dir), Presence::kComplete);
  EXPECT_EQ(verify(entry, options_.data_dir).files, 2u);
  EXPECT_THAT(verify(entry, options_.data_dir).problems, IsEmpty());
  EXPECT_FALSE(get(entry, options_).fetched);
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST_F(Get, ReportsAndFixesMissingAndChangedFiles) {
  const auto entry = archive(
      gzip(tar(tar_entry("top/a", "abc") + tar_entry("top/deep/b", "abc") + tar_entry("top/deep/c", "abc"))));
  EXPECT_TRUE(get(entry, options_).fetched);
  write_file(here("pictures/a"), "abd");
  write_file(here("pictures/deep/c"), "abcd");
  fs::remove(here("pictures/deep/b"));
  write_file(here("pictures/notes"), "mine");
  EXPECT_THAT(verify(entry, options_.data_dir).problems,
              ElementsAre(here("pictures/a").string() + " has changed",
                          here("pictures/deep/b").string() + " is missing",
                          here("pictures/deep/c").string() + " has changed: 4 bytes instead of 3"));
  EXPECT_TRUE(get(entry, options_).fetched);
  EXPECT_THAT(verify(entry, options_.data_dir).problems, IsEmpty());
  EXPECT_FALSE(fs::exists(here("pictures/notes")));
  EXPECT_EQ(contents(here("pictures.old/notes")), "mine");
  EXPECT_FALSE(fs::exists(here("pictures.old/deep")));
}

TEST_F(Get, RejectsAnUnsafeArchive) {
  const auto entry = archive(gzip(tar(tar_entry("top/a", "abc") + tar_entry("top/../../evil", "x"))));
  EXPECT_THAT(failure(entry), HasSubstr("unsafe path"));
  EXPECT_EQ(code_, kFailed);
  EXPECT_FALSE(fs::exists(here("pictures")));
  EXPECT_FALSE(fs::exists(folder_ / "evil"));
  EXPECT_FALSE(fs::exists(here("evil")));
  EXPECT_THAT(failure(archive("no archive")), HasSubstr("is not a valid tar.gz archive"));
}

TEST_F(Get, DoesNotTouchForeignFolders) {
  fs::create_directories(here("pictures"));
  write_file(here("pictures/a"), "mine");
  const auto entry = archive(gzip(tar(tar_entry("top/a", "abc"))));
  EXPECT_EQ(presence(entry, options_.data_dir), Presence::kForeign);
  EXPECT_THAT([&] { (void)get(entry, options_); },
              ThrowsMessage<UserError>(HasSubstr("was not created by capstan data get")));
  EXPECT_EQ(contents(here("pictures/a")), "mine");
  const auto verdict = verify(entry, options_.data_dir);
  EXPECT_THAT(verdict.problems, ElementsAre(HasSubstr("cannot be verified")));
  EXPECT_EQ(verdict.text(),
            "pictures has no recorded checksums: capstan data get pictures --data-dir OTHER gets "
            "a new copy");
}

TEST_F(Get, AllowsOneProcessPerDataset) {
  fs::create_directories(here(""));
  const UniqueFd held(::open(here(".letters.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(::flock(held.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_THAT(failure(files()), HasSubstr("another capstan data get is working"));
  EXPECT_EQ(code_, kFailed);
  EXPECT_THAT(server_.requests(), IsEmpty());
}

TEST_F(Get, NamesAFolderThatCannotBeCreated) {
  write_file(folder_ / "file", "");
  options_.data_dir = folder_ / "file";
  EXPECT_THAT([&] { (void)get(files(), options_); },
              ThrowsMessage<UserError>(HasSubstr((folder_ / "file").string())));
}

TEST(Manifest, RoundTrip) {
  const TemporaryFolder folder;
  EXPECT_FALSE(read_manifest(folder.path()));
  const Manifest manifest{{{"a b/ c", 7, kMillionSum}, {"d", 0, kMillionSum}}};
  write_manifest(folder.path(), manifest);
  EXPECT_EQ(read_manifest(folder.path()), manifest);
  EXPECT_EQ(contents(folder / kManifestName),
            std::string("capstan manifest 1\n") + kMillionSum + " 7 a b/ c\n" + kMillionSum + " 0 d\n");
  for (const char* text : {"", "other\n", "capstan manifest 1\nx\n", "capstan manifest 1\nsha256:0 1\n"}) {
    write_file(folder / kManifestName, text);
    EXPECT_FALSE(read_manifest(folder.path())) << text;
  }
}

}  // namespace
}  // namespace capstan::fetch
