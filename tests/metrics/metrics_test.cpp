#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capstan/base/time.h"
#include "capstan/metrics/process_usage.h"
#include "capstan/metrics/run_folder.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"

namespace capstan::metrics {
namespace {

using capstan::testing::contents;
using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::EndsWith;
using ::testing::HasSubstr;

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(RunFolder, KeepsItsLinesAndFiles) {
  const TemporaryFolder folder;
  RunFolder run(folder / "a/b", "ignored");
  EXPECT_EQ(run.path(), folder / "a/b");
  run.append(R"({"step":1})");
  run.append(R"({"step":2})");
  EXPECT_EQ(contents(folder / "a/b/metrics.jsonl"), "{\"step\":1}\n{\"step\":2}\n");  // before the run ends
  run.write("config.toml", "x = 1\n");
  EXPECT_EQ(contents(folder / "a/b/config.toml"), "x = 1\n");
}

TEST(RunFolder, NeverOverwritesARun) {
  const TemporaryFolder folder;
  { RunFolder(folder / "run", "").append("precious"); }
  EXPECT_THAT(error_of([&] { RunFolder again(folder / "run", ""); }),
              EndsWith("run holds a run already: choose another --train-dir"));
  EXPECT_EQ(contents(folder / "run/metrics.jsonl"), "precious\n");
}

TEST(RunFolder, AcceptsAFolderWithOtherFiles) {
  const TemporaryFolder folder;
  write_file(folder / "notes.txt", "mine");
  RunFolder run(folder.path(), "");
  EXPECT_EQ(contents(folder / "notes.txt"), "mine");
}

TEST(RunFolder, AFileInTheWayIsAnErrorThatNamesIt) {
  const TemporaryFolder folder;
  write_file(folder / "file", "mine");
  EXPECT_THAT(error_of([&] { RunFolder run(folder / "file/run", ""); }), HasSubstr("file"));
  EXPECT_THAT(error_of([&] { RunFolder run(folder / "file", ""); }), HasSubstr("file"));
  EXPECT_EQ(contents(folder / "file"), "mine");
}

TEST(RunFolder, AFileThatCannotBeWrittenIsAnError) {
  const TemporaryFolder folder;
  const RunFolder run(folder / "run", "");
  EXPECT_THAT(error_of([&] { run.write("no/such/folder", "x"); }), HasSubstr("cannot write"));
}

TEST(RunFolder, RunsOfTheSameSecondGetDifferentFolders) {
  const TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const RunFolder a({}, "lenet-batch:2"), b({}, "lenet-batch:2"), c({}, "x/y z");
  std::filesystem::current_path(before);
  EXPECT_NE(a.path(), b.path());
  EXPECT_THAT(a.path().string(), EndsWith("-lenet-batch-2"));
  EXPECT_THAT(c.path().string(), EndsWith("-x-y-z"));
  EXPECT_EQ(c.path().parent_path(), "runs");
  EXPECT_TRUE(std::filesystem::exists(folder.path() / a.path() / "metrics.jsonl"));
}

TEST(ProcessUsage, SeesMemoryThatIsUsed) {
  const auto before = process_usage();
  EXPECT_GT(before.private_bytes, 100'000u);
  constexpr std::size_t kBytes = 64 << 20;
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 1, kBytes);
  EXPECT_GT(process_usage().private_bytes, before.private_bytes + kBytes / 2);
  ::munmap(memory, kBytes);
}

TEST(ProcessUsage, ExcludesSharedSegments) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's shadow memory is private";
#endif
  const auto before = process_usage();
  constexpr std::size_t kBytes = 64 << 20;
  const int fd = ::memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(fd, kBytes), 0);
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 1, kBytes);
  EXPECT_LT(process_usage().private_bytes, before.private_bytes + kBytes / 2);
  ::munmap(memory, kBytes);
  ::close(fd);
}

TEST(ProcessUsage, SeesWorkThatIsDone) {
  const auto before = process_usage().cpu_seconds;
  EXPECT_GE(before, 0.0);
  volatile double x = 1;
  const auto give_up = SteadyClock::now() + std::chrono::seconds(60);
  while (process_usage().cpu_seconds <= before && SteadyClock::now() < give_up) {
    for (int i = 0; i < 100'000; ++i) x = x * 1.0000001;
  }
  EXPECT_GT(process_usage().cpu_seconds, before);
}

}  // namespace
}  // namespace capstan::metrics
