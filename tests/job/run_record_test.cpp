#include "capstan/job/run_record.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "capstan/user_error.h"

#include "support/evaluations.h"
#include "support/temporary_folder.h"

namespace capstan::job {
namespace {

using testing::contents;
using testing::TemporaryFolder;

RunRecord record_in(const TemporaryFolder& folder, bool resumes = false) {
  return RunRecord(metrics::RunFolder(folder / "run", "", resumes));
}

TEST(RunRecord, WritesALineForEachEvent) {
  const TemporaryFolder folder;
  auto record = record_in(folder);
  record.resumed({7});
  wire::StatusReport status;
  status.version = {9};
  status.seconds = 1.5;
  status.samples = 64;
  status.loss = 0.25;
  record.progress(status);
  record.checkpoint({10});
  record.evaluation({{11}, 0.5, 100, 2, testing::classified(0.125, 0.75, 1, 50)});
  EXPECT_TRUE(record.is_complete());
  EXPECT_EQ(
      contents(folder / "run/metrics.jsonl"),
      R"({"kind":"resume","step":7})"
      "\n"
      R"({"kind":"progress","step":9,"seconds":1.5,"samples":64,"train_loss":0.25})"
      "\n"
      R"({"kind":"checkpoint","step":10})"
      "\n"
      R"({"kind":"evaluation","epoch":0.5,"step":11,"seconds":2.0,"samples":100.0,"test_accuracy":0.75,"test_loss":0.125,"test_top5":1.0})"
      "\n");
}

TEST(RunRecord, KeepsEveryConfigurationThatDiffers) {
  const TemporaryFolder folder;
  record_in(folder).write_configuration("a = 1\n");
  EXPECT_FALSE(std::filesystem::exists(folder / "run/config.1.toml"));
  record_in(folder, true).write_configuration("a = 1\n");
  EXPECT_FALSE(std::filesystem::exists(folder / "run/config.1.toml")) << "nothing has changed";
  record_in(folder, true).write_configuration("a = 2\n");
  record_in(folder, true).write_configuration("a = 3\n");
  EXPECT_EQ(contents(folder / "run/config.1.toml"), "a = 1\n");
  EXPECT_EQ(contents(folder / "run/config.2.toml"), "a = 2\n");
  EXPECT_EQ(contents(folder / "run/config.toml"), "a = 3\n");
}

// As on a full disk: every file ends after this many bytes.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(RunRecord, AConfigurationThatCannotBeWrittenLeavesTheEarlierOne) {
  const TemporaryFolder folder;
  record_in(folder).write_configuration("a = 1\n");
  auto record = record_in(folder, true);
  {
    const FileSizeLimit full_disk(3);
    EXPECT_THROW(record.write_configuration("a = 2\n"), UserError);
  }
  EXPECT_EQ(contents(folder / "run/config.toml"), "a = 1\n");
  const std::filesystem::directory_iterator files(folder / "run");
  EXPECT_EQ(std::distance(begin(files), end(files)), 2) << "config.toml and metrics.jsonl";
}

}  // namespace
}  // namespace capstan::job
