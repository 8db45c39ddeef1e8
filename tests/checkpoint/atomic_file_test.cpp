#include "capstan/checkpoint/atomic_file.h"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "capstan/base/user_error.h"
#include "support/temporary_folder.h"

namespace capstan::checkpoint {
namespace {

using capstan::testing::contents;
using capstan::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

void write(AtomicFile& file, std::string_view text) {
  file.write(std::as_bytes(std::span(text)));
}

TEST(AtomicFile, AppearsAtCommit) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "a");
  write(file, "first, ");
  write(file, "second");
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  file.commit();
  EXPECT_EQ(contents(folder / "a"), "first, second");
  EXPECT_EQ(folder.files(), 1);
}

TEST(AtomicFile, KeepsOnlyTheOldFileWithoutCommit) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a") << "old";
  {
    AtomicFile file(folder / "a");
    write(file, "new");
  }
  EXPECT_EQ(contents(folder / "a"), "old");
  EXPECT_EQ(folder.files(), 1);
}

TEST(AtomicFile, NamesTheFileThatCannotBeWritten) {
  EXPECT_THAT([] { AtomicFile file("/no/such/folder/a"); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("/no/such/folder/a"), HasSubstr("No such file"))));
}

// A limit on the file size simulates a full disk: write fails in the middle.
TEST(AtomicFile, KeepsOnlyTheOldFileAfterAFailedWrite) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a") << "old";
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  std::string message;
  try {
    AtomicFile file(folder / "a");
    write(file, std::string(10'000, 'x'));
    file.commit();
  } catch (const UserError& error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, AllOf(HasSubstr((folder / "a").string()), HasSubstr("File too large")));
  EXPECT_EQ(contents(folder / "a"), "old");
  EXPECT_EQ(folder.files(), 1);
}

}  // namespace
}  // namespace capstan::checkpoint
