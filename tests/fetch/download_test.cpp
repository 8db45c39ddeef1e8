#include "capstan/fetch/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/base/failure.h"
#include "http_server.h"
#include "support/eventually.h"
#include "support/temporary_folder.h"

namespace capstan::fetch {
namespace {

using capstan::testing::Answer;
using capstan::testing::contents;
using capstan::testing::eventually;
using capstan::testing::HttpServer;
using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::HasSubstr;

std::string some_bytes(std::size_t count) {
  std::string out(count, '\0');
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<char>(i * i % 251);
  return out;
}

// A server's thread may have to wait for a core: only a test of a stall uses a short limit.
constexpr Timeouts kPatient = {.connect_seconds = 60, .stall_seconds = 60};

class Download : public ::testing::Test {
 protected:
  Transfer transfer(const std::string& path = "/a") {
    Transfer t;
    t.url = server_.url() + path;
    t.part = folder_ / "a.part";
    t.timeouts = kPatient;
    return t;
  }
  std::string part() const { return contents(folder_ / "a.part"); }

  const TemporaryFolder folder_;
  const std::string body_ = some_bytes(300'000);
  HttpServer server_;
};

TEST_F(Download, DownloadsEveryByteAndReportsProgress) {
  server_.set("/a", {body_});
  auto t = transfer();
  std::uint64_t last = 0, of = 0;
  t.progress = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_GE(done, last);
    last = done;
    of = total;
  };
  EXPECT_TRUE(download(t));
  EXPECT_EQ(part(), body_);
  EXPECT_EQ(last, body_.size());
  EXPECT_EQ(of, body_.size());
  ASSERT_EQ(server_.requests().size(), 1u);
  EXPECT_EQ(server_.requests()[0].range, "");
}

TEST_F(Download, OfAnEmptyFileIsAnEmptyFile) {
  server_.set("/a", {""});
  EXPECT_TRUE(download(transfer()));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "a.part"));
  EXPECT_EQ(part(), "");
}

TEST_F(Download, ResumesAfterExistingBytes) {
  server_.set("/a", {body_});
  write_file(folder_ / "a.part", body_.substr(0, 100'000));
  auto t = transfer();
  std::uint64_t of = 0;
  t.progress = [&](std::uint64_t, std::uint64_t total) { of = total; };
  EXPECT_TRUE(download(t));
  EXPECT_EQ(part(), body_);
  EXPECT_EQ(of, body_.size());
  EXPECT_EQ(server_.requests()[0].range, "100000-");
}

TEST_F(Download, StartsOverWithoutRangeSupport) {
  server_.set("/a", Answer{.body = body_, .knows_ranges = false});
  write_file(folder_ / "a.part", "something else");
  EXPECT_TRUE(download(transfer()));
  EXPECT_EQ(part(), body_);
}

TEST_F(Download, LeavesACompletePartToTheChecksum) {
  server_.set("/a", {body_});
  write_file(folder_ / "a.part", body_);
  EXPECT_TRUE(download(transfer()));
  EXPECT_EQ(part(), body_);
}

TEST_F(Download, KeepsReceivedBytesAfterABrokenConnection) {
  server_.set("/a", Answer{.body = body_, .stop_after = 50'000});
  const auto status = download(transfer());
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(part(), body_.substr(0, 50'000));
}

TEST_F(Download, GivesUpAStalledServer) {
  server_.set("/a", Answer{.body = body_, .stop_after = 50'000, .stops = 100, .stalls = true});
  auto t = transfer();
  t.timeouts.stall_seconds = 1;
  Status status;
  // On a busy machine the limit may pass before the server has sent anything: then the stall is not tested
  // yet.
  ASSERT_TRUE(eventually([&] {
    status = download(t);
    return !part().empty();
  }));
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("too slow"));
  EXPECT_TRUE(body_.starts_with(part()));
}

TEST_F(Download, ReportsTheServersError) {
  const auto status = download(transfer("/nothing"));
  EXPECT_EQ(status.message(), "HTTP 404");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.part"));
}

TEST_F(Download, RejectsAFileThatIsTooLong) {
  server_.set("/a", {body_});
  auto t = transfer();
  t.most_bytes = body_.size() - 1;
  EXPECT_EQ(download(t).code(), StatusCode::kMalformed);
}

TEST_F(Download, FollowsFiveRedirectsAndNoMore) {
  server_.set("/0", {body_});
  for (int i = 1; i <= 6; ++i)
    server_.set("/" + std::to_string(i), Answer{.status = 302, .location = "/" + std::to_string(i - 1)});
  EXPECT_TRUE(download(transfer("/5")));
  EXPECT_EQ(part(), body_);
  std::filesystem::remove(folder_ / "a.part");
  EXPECT_THAT(download(transfer("/6")).message(), HasSubstr("redirects"));
}

TEST_F(Download, DoesNotFollowRedirectsToLocalFiles) {
  write_file(folder_ / "secret", "secret");
  server_.set("/a", Answer{.status = 302, .location = "file://" + (folder_ / "secret").string()});
  EXPECT_FALSE(download(transfer()));
  EXPECT_EQ(part(), "");
}

TEST_F(Download, KeepsReceivedBytesAfterAnInterrupt) {
  server_.set("/a", Answer{.body = body_, .stop_after = 50'000, .stalls = true});
  auto t = transfer();
  bool stopped = false;
  t.interrupted = [&] {
    EXPECT_FALSE(stopped) << "it continues";
    return stopped = part().size() == 50'000;
  };
  try {
    (void)download(t);
    FAIL() << "an interrupt is a Failure";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), kInterrupted);
    EXPECT_THAT(failure.what(), HasSubstr("run the same command again"));
  }
  EXPECT_EQ(part(), body_.substr(0, 50'000));
}

TEST_F(Download, ReportsAnUnreachableServer) {
  auto t = transfer();
  t.url = "http://127.0.0.1:1/a";
  EXPECT_EQ(download(t).code(), StatusCode::kUnavailable);
}

TEST_F(Download, CopiesALocalFile) {
  write_file(folder_ / "source", body_);
  write_file(folder_ / "a.part", "something else");
  auto t = transfer();
  t.url = (folder_ / "source").string();
  EXPECT_TRUE(download(t));
  EXPECT_EQ(part(), body_);
  t.url = (folder_ / "none").string();
  EXPECT_THAT(download(t).message(), HasSubstr("No such file"));
  t.url = folder_.path().string();
  EXPECT_THAT(download(t).message(), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace capstan::fetch
