#include "capstan/checkpoint/atomic_file.h"

#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capstan/user_error.h"

#include "support/temporary_folder.h"

namespace {

// What the functions below, which take the place of the C library's, see and do.
struct System {
  std::vector<std::string> calls;  // that concern AtomicFile, up to the one that fails
  int failing = 0;                 // this call, counted from 1, fails with ENOSPC
  int count = 0;
};
System* watched = nullptr;

bool is_folder(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
}

bool fails(const std::string& call) {
  if (!watched || (watched->failing > 0 && watched->count >= watched->failing)) return false;
  watched->calls.push_back(call);
  if (++watched->count != watched->failing) return false;
  errno = ENOSPC;
  return true;
}

}  // namespace

extern "C" int fsync(int fd) {
  if (fails(is_folder(fd) ? "fsync folder" : "fsync file")) return -1;
  return static_cast<int>(::syscall(SYS_fsync, fd));
}
extern "C" int close(int fd) {
  const bool failed = !is_folder(fd) && fails("close file");
  // The descriptor is free even after an error. Not by system call, so that a sanitizer learns of it.
  static const auto next = reinterpret_cast<int (*)(int)>(::dlsym(RTLD_NEXT, "close"));
  const int result = next(fd);
  if (!failed) return result;
  errno = ENOSPC;
  return -1;
}
extern "C" int rename(const char* from, const char* to) noexcept {
  if (fails("rename")) return -1;
  return static_cast<int>(::syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to));
}

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

TEST(AtomicFile, IsOnDiskBeforeItHasItsName) {
  const TemporaryFolder folder;
  System system;
  AtomicFile file(folder / "a");
  write(file, "text");
  watched = &system;
  file.commit();
  watched = nullptr;
  EXPECT_THAT(system.calls, ::testing::ElementsAre("fsync file", "close file", "rename", "fsync folder"));
}

TEST(AtomicFile, EveryStepThatFailsIsAnError) {
  for (const int step : {1, 2, 3, 4}) {
    const TemporaryFolder folder;
    std::ofstream(folder / "a") << "old";
    System system;
    system.failing = step;
    std::string message;
    try {
      AtomicFile file(folder / "a");
      write(file, "new");
      watched = &system;
      file.commit();
    } catch (const UserError& error) {
      message = error.what();
    }
    watched = nullptr;
    EXPECT_EQ(message, "cannot write " + (folder / "a").string() + ": No space left on device") << step;
    EXPECT_EQ(static_cast<int>(system.calls.size()), step);
    EXPECT_EQ(contents(folder / "a"), step < 4 ? "old" : "new");
    EXPECT_EQ(folder.files(), 1) << step;
  }
}

TEST(AtomicFile, DoesNotReplaceAFolder) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "a" / "b");
  AtomicFile file(folder / "a");
  write(file, "text");
  EXPECT_THAT([&] { file.commit(); }, ThrowsMessage<UserError>(HasSubstr("Is a directory")));
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
